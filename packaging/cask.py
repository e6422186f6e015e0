"""Writes Casks/slipstream.rb from the bundle's facts, and checks it.

python packaging/cask.py --dmg build/dist/Slipstream-0.1.0-arm64.dmg     after a release was built
python packaging/cask.py                                                 before: without a checksum
python packaging/cask.py --check                                         says what differs, writes nothing
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import bundle

CASK = bundle.ROOT / "Casks" / "slipstream.rb"
# Every folder and file that the app writes outside folders which the user or other programs own. The models stay: the
# Hugging Face cache belongs to other programs too. What `agents write` changed is undone by `agents undo`.
WRITTEN = (
    "~/Library/Application Support/Slipstream",
    "~/Library/Caches/Slipstream",
    f"~/Library/LaunchAgents/{bundle.BUNDLE_ID}.plist",
    # QSettings makes this name of the organisation's and the application's, both Slipstream.
    "~/Library/Preferences/com.slipstream.Slipstream.plist",
)
# macOS keeps these for every app, under its bundle id.
BY_MACOS = (
    f"~/Library/HTTPStorages/{bundle.BUNDLE_ID}",
    f"~/Library/Saved Application State/{bundle.BUNDLE_ID}.savedState",
)
MACOS_NAMES = {"14": "sonoma", "15": "sequoia"}


def cask(version: str, sha256: str | None, repository: str = bundle.REPOSITORY) -> str:
    checksum = f'"{sha256}"' if sha256 else ":no_check"
    system = MACOS_NAMES[bundle.MINIMUM_MACOS.split(".")[0]]
    trash = "\n".join(f'    "{path}",' for path in sorted((*WRITTEN, *BY_MACOS)))
    return f"""# Made by packaging/cask.py; change that instead.
cask "slipstream" do
  version "{version}"
  sha256 {checksum}

  url "{repository}/releases/download/v#{{version}}/Slipstream-#{{version}}-arm64.dmg"
  name "Slipstream"
  desc "Local language models, faster by speculative decoding"
  homepage "{repository}"

  livecheck do
    url :url
    strategy :github_latest
  end

  depends_on arch: :arm64
  depends_on macos: ">= :{system}"

  app "Slipstream.app"
  binary "#{{appdir}}/Slipstream.app/Contents/Resources/bin/slipstream"

  uninstall launchctl: "{bundle.BUNDLE_ID}",
            quit:      "{bundle.BUNDLE_ID}"

  zap trash: [
{trash}
  ]

  caveats <<~EOS
    Models stay in the Hugging Face cache, which other programs use too.
  EOS
end
"""


def differences() -> list[str]:
    """What is wrong with the Cask that lies there. Its checksum is the release's and is taken as it is."""
    if not CASK.is_file():
        return [f"{CASK} is missing; run: python packaging/cask.py"]
    there = CASK.read_text(encoding="utf-8")
    said = re.search(r'^  sha256 (?:"([0-9a-f]{64})"|:no_check)$', there, re.M)
    if said is None:
        return ["sha256 is neither a checksum nor :no_check"]
    found: list[str] = []
    if there != cask(bundle.version(), said[1]):
        found.append("it is not what packaging/cask.py makes for this version; run: python packaging/cask.py")
    if ruby := shutil.which("ruby"):
        done = subprocess.run([ruby, "-c", str(CASK)], capture_output=True, text=True, check=False)
        if done.returncode:
            found.append(done.stderr.strip())
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dmg", type=Path, help="the released image, for its checksum")
    parser.add_argument("--repository", default=bundle.REPOSITORY, help="address of the repository with the releases")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--dry-run", action="store_true", help="print it instead of writing it")
    args = parser.parse_args()
    if args.check:
        found = differences()
        print("\n".join(found) or f"{CASK.relative_to(bundle.ROOT)} is in order")
        return 1 if found else 0
    sha256 = None
    if args.dmg is not None:
        with args.dmg.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    text = cask(bundle.version(), sha256, args.repository.rstrip("/"))
    if args.dry_run:
        print(text, end="")
    else:
        CASK.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
