"""A download as the Models screen shows it."""

from __future__ import annotations

from dataclasses import replace

from slipstream.errors import DiskFull, DownloadFailed, LicenceNeeded, TokenNeeded, Unreachable
from slipstream.store import download_state
from slipstream_app.models.pairs import DownloadState, Fetch
from slipstream_app.numbers import number_text
from slipstream_app.strings import mark, shown


def fetch_state(repo: str, state: download_state.State) -> DownloadState:
    match state:
        case download_state.Waiting() | download_state.Looking():
            return DownloadState(repo, Fetch.WAITING if isinstance(state, download_state.Waiting) else Fetch.LOOKING)
        case download_state.Finished():
            return DownloadState(repo, Fetch.DONE, 1, 1)
        case download_state.Retrying(progress, reason, wait_s):
            again = shown("Store", mark("Store", "{0} (again in {1} s)"))
            words = again.format(reason, number_text(wait_s, 0)) if wait_s >= 1 else reason
            return _with(DownloadState(repo, Fetch.RETRYING, words=words), progress)
        case download_state.Failed(error, progress):
            page = str(error.facts.get("url", "")) if isinstance(error, TokenNeeded | LicenceNeeded) else ""
            failed = DownloadState(
                repo,
                Fetch.FAILED,
                words=error.message,
                page=page,
                is_offline=_is_offline(error),
                wants_token=isinstance(error, TokenNeeded),
                is_full=isinstance(error, DiskFull),
            )
            return _with(failed, progress)
        case download_state.Fetching(progress) | download_state.Paused(progress):
            fetch = Fetch.RUNNING if isinstance(state, download_state.Fetching) else Fetch.PAUSED
            return _with(DownloadState(repo, fetch), progress)


def _is_offline(error: DownloadFailed) -> bool:
    return isinstance(error, Unreachable) and str(error.facts.get("kind", "")).startswith("offline")


def _with(state: DownloadState, progress: download_state.Progress | None) -> DownloadState:
    if progress is None:
        return state
    files = tuple((file.name, file.done, file.size) for file in progress.files)
    return replace(
        state,
        done=progress.done,
        total=progress.total,
        files=files,
        bytes_per_s=progress.bytes_per_s,
        remaining_s=progress.remaining_s,
    )
