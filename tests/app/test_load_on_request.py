"""A request to the app's server when nothing is loaded: it loads the last pair, or is told why not."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest
from pytestqt.qtbot import QtBot

from fakes import FakeEngine, FakeTokeniser
from slipstream.errors import WontFit
from slipstream.events import Faulted
from slipstream.server import tokenising
from slipstream_app.bridge.server import ServerOff, ServerOn
from slipstream_app.windows.shell import Shell

BODY: dict[str, Any] = {"model": "any", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 64}


class Client:
    """Asks on a thread of its own: the window's has to load meanwhile."""

    def __init__(self, url: str, path: str = "/v1/chat/completions", body: dict[str, Any] = BODY) -> None:
        self.answer: httpx.Response | None = None
        self._thread = threading.Thread(target=self._ask, args=(url + path, body))
        self._thread.start()

    def _ask(self, url: str, body: dict[str, Any]) -> None:
        self.answer = httpx.post(url, json=body, timeout=30)

    def wait(self, qtbot: QtBot) -> httpx.Response:
        qtbot.waitUntil(lambda: self.answer is not None, timeout=30_000)
        self._thread.join()
        assert self.answer is not None
        return self.answer


@pytest.fixture
def serving(qtbot: QtBot, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(tokenising, "FolderTokeniser", lambda _: FakeTokeniser())
    shell.switch.start()
    qtbot.waitUntil(lambda: isinstance(shell.app.server.state, ServerOn), timeout=20_000)
    state = shell.app.server.state
    assert isinstance(state, ServerOn)
    return state.url


def told(answer: httpx.Response) -> Any:  # Any: JSON
    return answer.json()


def test_the_first_request_loads_the_last_pair(qtbot: QtBot, shell: Shell, serving: str, engine: FakeEngine) -> None:
    assert shell.app.session.choice is None
    answer = Client(serving).wait(qtbot)
    assert answer.status_code == 200
    assert told(answer)["choices"][0]["message"]["content"] == "One, two, three"
    assert shell.app.session.choice == shell.recent.pairs[0]


def test_after_an_idle_time_the_next_request_loads_it_again(
    qtbot: QtBot, shell: Shell, serving: str, engine: FakeEngine
) -> None:
    assert Client(serving).wait(qtbot).status_code == 200
    shell.watch.idle.emit()
    qtbot.waitUntil(lambda: shell.app.session.info is None, timeout=5000)
    assert httpx.get(f"{serving}/health", timeout=10).json()["status"] == "ok"
    assert Client(serving).wait(qtbot).status_code == 200


def test_a_pair_that_does_not_load_is_the_clients_answer(qtbot: QtBot, shell: Shell, serving: str) -> None:
    def fail(*_: object) -> FakeEngine:
        raise WontFit("it needs 40 GB; choose a smaller one")

    shell.app.session._life.worker._open_pair = fail
    for _ in range(2):  # the second does not wait for a load that nobody begins
        answer = Client(serving).wait(qtbot)
        assert answer.status_code >= 500
        assert "40 GB" in told(answer)["error"]["message"]
    assert isinstance(shell.app.session.status, Faulted)


def test_switched_off_requests_are_refused(qtbot: QtBot, shell: Shell, serving: str) -> None:
    shell.app.settings.set("server/load_on_request", False)
    qtbot.waitUntil(lambda: not isinstance(shell.app.server.state, ServerOn | ServerOff), timeout=20_000)
    qtbot.waitUntil(lambda: isinstance(shell.app.server.state, ServerOn), timeout=20_000)
    answer = Client(serving).wait(qtbot)
    assert answer.status_code >= 400
    assert shell.app.session.choice is None
