"""The user's Hugging Face token: in the Mac's Keychain, elsewhere where `hf auth login` keeps it, never with us."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from slipstream.errors import InvalidRequest

SERVICE, ACCOUNT = "Slipstream", "huggingface.co"
TIMEOUT_S = 20.0  # macOS may ask the user first
_SECURITY = "/usr/bin/security"


def saved() -> str | None:
    """Ours. None: huggingface-hub looks in its own places (HF_TOKEN, hf auth login)."""
    if sys.platform != "darwin":
        return None
    try:
        done = subprocess.run(
            [_SECURITY, "find-generic-password", "-s", SERVICE, "-a", ACCOUNT, "-w"],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def save(token: str) -> None:
    """Raises InvalidRequest for what is no token, or cannot be kept. The message never holds it."""
    token = token.strip()
    if not token.startswith("hf_") or not token.isascii() or not token.replace("_", "").isalnum():
        raise InvalidRequest(
            "this is no Hugging Face token; copy one that begins with hf_ from your account's settings"
        )
    if sys.platform == "darwin":
        _into_keychain(token)
        return
    from huggingface_hub import constants

    file = Path(constants.HF_TOKEN_PATH)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.chmod(0o600)
        file.write_text(token, "ascii")
    except OSError as error:
        raise InvalidRequest(f"the token cannot be kept in {file.parent} ({error.strerror})") from error


def _into_keychain(token: str) -> None:
    # By standard input: what stands on a command line, every program can read.
    command = f"add-generic-password -U -s {SERVICE} -a {ACCOUNT} -w {token}\n"
    try:
        done = subprocess.run(
            [_SECURITY, "-i"], input=command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InvalidRequest("the Keychain did not answer; try again, or use: hf auth login") from error
    if done.returncode != 0 or "error" in done.stderr.lower():
        raise InvalidRequest("the Keychain would not keep the token; unlock it, or use: hf auth login")
