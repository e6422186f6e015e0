"""The newest release, from a feed that answers well or badly."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator

import pytest

import bundle
from slipstream.errors import Unreachable
from slipstream.store import releases
from slipstream.store.releases import Channel, Release

GOOD = {"tag_name": "v1.10.0", "html_url": "https://example.org/1.10.0", "body": "- Faster."}


class Feed(http.server.BaseHTTPRequestHandler):
    body: bytes = b""
    status = 200
    asked: list[dict[str, str]] = []  # noqa: RUF012 - replaced by each test

    def do_GET(self) -> None:
        self.asked.append({name.lower(): value for name, value in self.headers.items()})
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


@pytest.fixture
def feed() -> Iterator[str]:
    Feed.asked, Feed.status, Feed.body = [], 200, json.dumps(GOOD).encode()
    server = http.server.HTTPServer(("127.0.0.1", 0), Feed)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_newest_release_is_told_and_nothing_about_us_is_sent(feed: str) -> None:
    assert releases.newest(feed=feed) == Release("1.10.0", "https://example.org/1.10.0", "- Faster.")
    (headers,) = Feed.asked
    assert headers["user-agent"] == "Slipstream"
    assert set(headers) == {"user-agent", "accept", "accept-encoding", "host", "connection"}


def test_before_the_first_release_there_is_none(feed: str) -> None:
    Feed.status = 404
    assert releases.newest(feed=feed) is None


def test_pre_releases_are_told_only_to_those_who_want_them(feed: str) -> None:
    early = {**GOOD, "tag_name": "v1.11.0-rc2", "html_url": "https://example.org/rc2", "prerelease": True}
    draft = {**GOOD, "tag_name": "v9.0.0", "draft": True}
    Feed.body = json.dumps([draft, GOOD, early, {**early, "tag_name": "v1.11.0-rc1"}]).encode()
    found = releases.newest(Channel.EARLY, feed)
    assert found == Release("1.11.0-rc2", "https://example.org/rc2", "- Faster.", is_early=True)
    Feed.body = json.dumps([GOOD, {**early, "tag_name": "v1.10.0-rc9"}]).encode()
    assert releases.newest(Channel.EARLY, feed) == Release("1.10.0", "https://example.org/1.10.0", "- Faster.")
    Feed.body = b"[]"
    assert releases.newest(Channel.EARLY, feed) is None
    assert releases._FEEDS[Channel.STABLE].endswith("/releases/latest")  # which GitHub defines as no pre-release


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b""),
        (200, b"<html>"),
        (200, b"[]"),
        (200, b"{}"),
        (200, json.dumps({**GOOD, "html_url": "file:///x"}).encode()),
    ],
)
def test_a_feed_that_answers_badly_is_one_sentence(feed: str, status: int, body: bytes) -> None:
    Feed.status, Feed.body = status, body
    with pytest.raises(Unreachable, match="the list of releases"):
        releases.newest(feed=feed)


def test_without_a_network_it_is_one_sentence_too() -> None:
    with pytest.raises(Unreachable, match="cannot be reached"):
        releases.newest(feed="http://127.0.0.1:9/")


@pytest.mark.parametrize(
    ("version", "mine", "is_newer"),
    [
        ("0.2.0", "0.1.0", True),
        ("0.10.0", "0.9.9", True),
        ("0.1.0", "0.1.0", False),
        ("0.1.0", "0.2.0", False),
        ("1.0", "1.0.0", False),
        ("nightly", "0.1.0", False),
        ("0.2.0-rc1", "0.1.0", True),
        ("0.2.0-rc1", "0.2.0", False),
        ("0.2.0", "0.2.0-rc1", True),
        ("0.2.0-rc10", "0.2.0-rc2", True),
        ("0.2.0-rc.1", "0.2.0-beta.9", True),
        ("0.2.0-rc1", "0.2.0-rc1", False),
    ],
)
def test_versions_are_compared_as_numbers(version: str, mine: str, is_newer: bool) -> None:
    assert Release(version, "https://x", "").is_newer_than(mine) is is_newer


def test_the_releases_are_those_that_the_packaging_makes() -> None:
    assert f"https://github.com/{releases.REPOSITORY}" == bundle.REPOSITORY
