"""Which release is the newest: one HTTPS request to the list of releases, with nothing of this machine in it."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from slipstream.errors import Unreachable

REPOSITORY = "slipstream-app/slipstream"
HOST = "api.github.com"
FEED = f"https://{HOST}/repos/{REPOSITORY}/releases/latest"
TIMEOUT_S = 10.0
MOST_BYTES = 256 * 1024
AGENT = "Slipstream"  # GitHub answers nobody without a name; no version, no system


@dataclass(frozen=True, slots=True)
class Release:
    version: str  # without the v of its tag
    page: str  # on the web
    notes: str  # Markdown

    def is_newer_than(self, version: str) -> bool:
        """Also false when either is no version."""
        mine, own = _numbers(version), _numbers(self.version)
        return bool(mine and own) and own > mine


def newest(feed: str = FEED) -> Release | None:
    """None when nothing was released yet. Raises Unreachable."""
    request = urllib.request.Request(feed, headers={"User-Agent": AGENT, "Accept": "application/vnd.github+json"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            told: Any = json.loads(answer.read(MOST_BYTES))  # Any: JSON
        version, page = str(told["tag_name"]).removeprefix("v"), str(told["html_url"])
        notes = str(told.get("body") or "")
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise Unreachable(f"the list of releases answered {error.code}; try again later") from None
    except (OSError, ValueError) as error:
        raise Unreachable("the list of releases cannot be reached; check the connection") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise Unreachable("the list of releases cannot be understood; look at its page on the web") from error
    if not page.startswith("https://"):
        raise Unreachable("the list of releases names no page; look at it on the web")
    return Release(version, page, notes)


def _numbers(version: str) -> tuple[int, ...]:
    """1.10.0 is after 1.9.2; what follows the numbers does not count."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
