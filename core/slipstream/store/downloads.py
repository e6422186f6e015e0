"""The queue of downloads, on a thread of its own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from slipstream.store.download import Download
from slipstream.store.download_state import FOR_PEOPLE, Patience, Paused, State, Waiting


class Downloads:
    """The queue: one repository after the other, on a thread of its own ("store").

    `notify(repo, state)` is called on that thread, at most some ten times a second. What a download has fetched stays
    on disk whatever happens; `start` goes on where it ended, in this process or another.
    """

    def __init__(self, notify: Callable[[str, State], None], *, patience: Patience = FOR_PEOPLE) -> None:
        self._notify = notify
        self._patience = patience
        self._changed = threading.Condition()
        self._queue: deque[Download] = deque()
        self._current: Download | None = None
        self._states: dict[str, State] = {}
        self._is_closed = False
        self._thread = threading.Thread(target=self._serve, name="store", daemon=True)
        self._thread.start()

    def start(
        self,
        repo: str,
        revision: str | None = None,
        *,
        include: Sequence[str] = (),
        code: bool = False,
        token: str | None = None,
    ) -> None:
        """Queue a repository, or continue it. One that is queued or running already stays as it is."""

        def say(state: State) -> None:
            with self._changed:
                self._states[repo] = state
            self._notify(repo, state)

        download = Download(
            repo, say, revision=revision, include=include, code=code, token=token, patience=self._patience
        )
        with self._changed:
            under_way = [*self._queue, *([self._current] if self._current else [])]
            if self._is_closed or any(other.repo == repo and not other.is_over for other in under_way):
                return
            self._queue.append(download)
            self._states[repo] = Waiting()
            self._changed.notify_all()

    def pause(self, repo: str) -> None:
        """Takes effect at once, also while the network stalls; ends with Paused."""
        with self._changed:
            waiting = next((download for download in self._queue if download.repo == repo), None)
            if waiting is not None:
                self._queue.remove(waiting)
                self._states[repo] = Paused(None)
            elif self._current is not None and self._current.repo == repo:
                self._current.pause()
        if waiting is not None:
            self._notify(repo, Paused(None))

    @property
    def states(self) -> Mapping[str, State]:
        """The latest state of every download of this run."""
        with self._changed:
            return dict(self._states)

    def close(self) -> None:
        """Pause what runs and end the thread."""
        with self._changed:
            self._is_closed = True
            self._queue.clear()
            if self._current is not None:
                self._current.pause()
            self._changed.notify_all()
        self._thread.join(10.0)

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._is_closed)
                if self._is_closed:
                    return
                self._current = self._queue.popleft()
            try:
                self._current.run()
            finally:
                with self._changed:
                    self._current = None
