"""Which release is the newest: one HTTPS request to the list of releases, with nothing of this machine in it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from slipstream.errors import Unreachable

REPOSITORY = "slipstream-app/slipstream"
HOST = "api.github.com"
RELEASES = f"https://{HOST}/repos/{REPOSITORY}/releases"
TIMEOUT_S = 10.0
MOST_BYTES = 1024 * 1024
AGENT = "Slipstream"  # GitHub answers nobody without a name; no version, no system


class Channel(StrEnum):
    STABLE = "stable"
    EARLY = "early"  # pre-releases too


# The newest that is no pre-release; the last ones of either kind.
_FEEDS = {Channel.STABLE: f"{RELEASES}/latest", Channel.EARLY: f"{RELEASES}?per_page=10"}


@dataclass(frozen=True, slots=True)
class Release:
    version: str  # without the v of its tag
    page: str  # on the web
    notes: str  # Markdown
    is_early: bool = False  # a pre-release

    def is_newer_than(self, version: str) -> bool:
        """Also false when either is no version."""
        mine, own = _order(version), _order(self.version)
        return mine is not None and own is not None and own > mine


def newest(channel: Channel = Channel.STABLE, feed: str = "") -> Release | None:
    """None when nothing was released yet. Raises Unreachable."""
    import urllib.error  # 25 ms, which the start of the app does not have
    import urllib.request

    asked = feed or _FEEDS[channel]
    request = urllib.request.Request(asked, headers={"User-Agent": AGENT, "Accept": "application/vnd.github+json"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            told: Any = json.loads(answer.read(MOST_BYTES))  # Any: JSON
        listed = told if channel is Channel.EARLY else [told]
        found = [_release(row) for row in listed if not row.get("draft")]
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise Unreachable(f"the list of releases answered {error.code}; try again later") from None
    except (OSError, ValueError) as error:
        raise Unreachable("the list of releases cannot be reached; check the connection") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise Unreachable("the list of releases cannot be understood; look at its page on the web") from error
    best = max(found, key=lambda release: _order(release.version) or _LOWEST, default=None)
    if best is not None and not best.page.startswith("https://"):
        raise Unreachable("the list of releases names no page; look at it on the web")
    return best


def _release(row: Mapping[str, Any]) -> Release:  # Any: JSON
    version, page = str(row["tag_name"]).removeprefix("v"), str(row["html_url"])
    return Release(version, page, str(row.get("body") or ""), row.get("prerelease") is True)


_Order = tuple[tuple[int, ...], tuple[int, tuple[tuple[int, int, str], ...]]]
_LOWEST = cast(_Order, ((), (0, ())))


def _order(version: str) -> _Order | None:
    """Semantic Versioning 2, section 11: 1.10.0 is after 1.9.2, 1.2.0-rc.10 after -rc.2, and 1.2.0 after both."""
    found = re.fullmatch(r"(\d+(?:\.\d+)*)(?:-([0-9A-Za-z.-]+))?(?:\+.*)?", version)
    if found is None:
        return None
    numbers = tuple(int(part) for part in found[1].split("."))
    while numbers[-1:] == (0,):
        numbers = numbers[:-1]  # 1.0 is 1.0.0
    if found[2] is None:
        return numbers, (1, ())
    words = re.findall(r"\d+|[A-Za-z-]+", found[2])
    return numbers, (0, tuple((0, int(word), "") if word.isdigit() else (1, 0, word) for word in words))
