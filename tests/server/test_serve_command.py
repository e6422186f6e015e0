"""`slipstream serve`, as a person starts it and stops it."""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from server.requests import get, post
from slipstream.server import commands
from slipstream.store.neighbour import next_port

PROGRAM = textwrap.dedent("""
    import argparse, dataclasses, sys
    sys.path[:0] = [{tests!r}]
    from fakes import INFO, FakeEngine, Script
    from slipstream.errors import ModelNotFound
    from slipstream.server import commands
    from slipstream.store import demo

    def models_of(args):
        def opened(name, _report):
            if name == "gone":
                raise ModelNotFound("there is no model named gone; check its name")
            folder = INFO.path if name == "no-tokeniser" else str(demo.target())
            script = Script(prefill_s=30) if name == "slow" else Script()
            return FakeEngine(script, info=dataclasses.replace(INFO, path=folder))
        return commands.Models(args.model or "fake-model", opened)

    parser = argparse.ArgumentParser()
    commands.add_parser(parser.add_subparsers())
    sys.exit(commands.run(parser.parse_args(["serve", *sys.argv[1:]]), models_of))
""").format(tests=str(Path(__file__).parents[1]))


STOPS_WITHIN_S = 2.0
ASKED = {"model": "any", "stream": True, "messages": [{"role": "user", "content": "x"}]}


@contextmanager
def start(*arguments: str) -> Generator[subprocess.Popen[str]]:
    """Ended in any case: a check that fails must not wait for ever for a server that runs."""
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as program:
        try:
            yield program
        finally:
            program.kill()


def read_until(program: subprocess.Popen[str], sign: str) -> str:
    assert program.stdout is not None
    told = ""
    while sign not in told:
        line = program.stdout.readline()
        assert line, told
        told += line
    return told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_how_to_connect_and_stops_cleanly(number: signal.Signals) -> None:
    with start("--port", "0") as program:
        told = read_until(program, "ANTHROPIC_BASE_URL")
        found = re.search(r"fake-model is ready at (http://127\.0\.0\.1:\d+)", told)
        assert found is not None
        url = found[1]
        assert f"OPENAI_BASE_URL={url}/v1 OPENAI_API_KEY=any" in told
        assert f"ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY=any" in told
        assert get(url, "/health").json()["status"] == "ok"
        began = time.monotonic()
        program.send_signal(number)
        out, err = program.communicate(timeout=10)
        assert time.monotonic() - began < STOPS_WITHIN_S
    assert (program.returncode, out.strip(), err) == (0, "Stopped.", "")


def test_it_stops_in_the_middle_of_a_prefill_and_the_client_is_told() -> None:
    """A forward pass cannot be interrupted, however long it takes."""
    with start("--model", "slow", "--port", "0") as program:
        found = re.search(r"ready at (\S+)", read_until(program, "ANTHROPIC_BASE_URL"))
        assert found is not None
        with httpx2.stream("POST", f"{found[1]}/v1/chat/completions", json=ASKED, trust_env=False) as answer:
            lines = answer.iter_lines()
            assert "assistant" in next(lines)
            began = time.monotonic()
            program.send_signal(signal.SIGTERM)
            assert "the server is shutting down" in "".join(lines)
        out, err = program.communicate(timeout=40)
        assert time.monotonic() - began < STOPS_WITHIN_S
    assert (program.returncode, out.strip()) == (0, "Stopped.")
    assert "Traceback" not in err


def test_wide_makes_a_key_and_shows_it_once() -> None:
    with start("--host", "0.0.0.0", "--port", "0", "--prompt-limit", "drop_oldest") as program:
        told = read_until(program, "ANTHROPIC_BASE_URL")
        found = re.search(r"a key was made: (\S+)", told)
        url = re.search(r"ready at (\S+)", told)
        assert found is not None and url is not None and told.count(found[1]) == 1
        assert get(url[1], "/v1/models").status_code == 401
        assert get(url[1], "/v1/models", headers={"x-api-key": found[1]}).status_code == 200
        told = get(url[1], "/admin/status", headers={"x-api-key": found[1]}).json()
        assert told["prompt_limit"] == "drop_oldest"
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=10)
    assert program.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--allow-origin", "*"], "is not an origin"),
        (["--host", "192.0.2.1", "--api-key", "k"], "192.0.2.1"),
        (["--model", "gone", "--port", "0"], "there is no model named gone"),
        (["--port", "99999"], "--port must be from 0 to 65535, not 99999"),
        (["--max-queue", "0"], "--max-queue must be at least 1, not 0"),
    ],
)
def test_what_cannot_be_served_is_one_sentence(arguments: list[str], sentence: str) -> None:
    with start(*arguments) as program:
        _, err = program.communicate(timeout=20)
    assert program.returncode == 2 and sentence in err and "Traceback" not in err
    assert err.count("\n") == 1


def test_a_second_server_is_told_who_has_the_port() -> None:
    with start("--port", "0") as program:
        found = re.search(r"ready at http://127\.0\.0\.1:(\d+)", read_until(program, "ANTHROPIC_BASE_URL"))
        assert found is not None
        port = int(found[1])
        with start("--port", str(port)) as second:
            _, err = second.communicate(timeout=20)
    assert err == (
        "slipstream serve: Slipstream already serves there; use that one, or start another with "
        f"--port {next_port(port)}\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(0)
        port = other.getsockname()[1]
        with start("--port", str(port)) as second:
            _, err = second.communicate(timeout=20)
    assert f"port {port} on 127.0.0.1 cannot be used" in err and f"--port {next_port(port)}" in err


def test_a_tokeniser_that_cannot_be_read_is_an_error_and_no_crash() -> None:
    with start("--model", "no-tokeniser", "--port", "0") as program:
        told = read_until(program, "ANTHROPIC_BASE_URL")
        url = re.search(r"ready at (\S+)", told)
        assert url is not None
        answer = post(url[1], "/v1/chat/completions", {"model": "any", "messages": [{"role": "user", "content": "x"}]})
        assert answer.status_code == 503 and answer.json()["error"]["code"] == "model_incomplete"
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=10)
    assert program.returncode == 0


@pytest.mark.parametrize(("text", "seconds"), [("300", 300), ("5m", 300), ("1.5h", 5400), ("forever", None)])
def test_times_are_written_as_people_do(text: str, seconds: float | None) -> None:
    parser = argparse.ArgumentParser()
    commands.add_parser(parser.add_subparsers())
    assert parser.parse_args(["serve", "--keep-alive", text]).keep_alive == seconds
    assert parser.parse_args(["serve"]).keep_alive is None
    with pytest.raises(SystemExit):
        parser.parse_args(["serve", "--keep-alive", "soon"])
