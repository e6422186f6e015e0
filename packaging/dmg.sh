#!/usr/bin/env bash
# Makes the disk image: the app, a link to /Applications, a background. Its layout is in dmg_settings.py.
# shellcheck source=packaging/steps.sh
. "$(dirname "$0")/steps.sh"
needs_mac
needs_program hdiutil "it is part of macOS"

if [ "$DRY" = no ] && [ ! -d "$APP" ]; then
    say "$APP is not there; run packaging/build.sh and packaging/sign.sh first"
    exit 2
fi
if [ "$DRY" = no ] && [ -f "$DMG" ] && [ "$DMG" -nt "$APP/Contents/_CodeSignature/CodeResources" ]; then
    say "$DMG is there already"
    exit 0
fi
python=build/env/bin/python
if [ "$DRY" = yes ]; then python=${PYTHON:-python3}; fi
# Checked in a dry run too: the layout is plain data.
"$python" packaging/dmg_settings.py
run rm -f "$DMG"
run uv tool run --from "dmgbuild>=1.6.7" dmgbuild -s packaging/dmg_settings.py -D "app=$APP" "$NAME" "$DMG"
if [ -n "${IDENTITY:-}" ]; then
    run codesign --force --sign "$IDENTITY" --timestamp "$DMG"
fi
run hdiutil verify "$DMG"
say "$DMG"
