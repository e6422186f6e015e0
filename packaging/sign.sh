#!/usr/bin/env bash
# Signs the app from the inside out. IDENTITY is a "Developer ID Application: …" of the keychain; without one the
# signature is ad hoc, which runs on this Mac and cannot be notarised.
# shellcheck source=packaging/steps.sh
. "$(dirname "$0")/steps.sh"
needs_mac
needs_program codesign "install Xcode's command line tools: xcode-select --install"
IDENTITY=${IDENTITY:--}

sign() {
    local options=(--force --options runtime --sign "$IDENTITY")
    if [ "$IDENTITY" != - ]; then options+=(--timestamp); fi
    run codesign "${options[@]}" "$@"
}

if [ "$DRY" = no ] && [ ! -d "$APP" ]; then
    say "$APP is not there; run packaging/build.sh first"
    exit 2
fi
if [ "$DRY" = no ] && [ "$IDENTITY" != - ] &&
    codesign --verify --deep --strict "$APP" 2>/dev/null && codesign -dv "$APP" 2>&1 | grep -q '^Timestamp='; then
    say "$APP is signed already"
    exit 0
fi

# Every Mach-O file that stands by itself, then frameworks, then the app: a signature covers those inside it.
list=$(mktemp)
trap 'rm -f "$list"' EXIT
if [ -d "$APP" ]; then
    find "$APP" -type f \( -name '*.so' -o -name '*.dylib' \) >"$list"
fi
while IFS= read -r file; do
    sign "$file"
done <"$list"
if [ -d "$APP" ]; then
    find "$APP" -depth -type d -name '*.framework' >"$list"
    while IFS= read -r framework; do
        sign "$framework"
    done <"$list"
fi
# py2app's second program, where it made one.
if [ -f "$APP/Contents/MacOS/python" ]; then
    sign --entitlements packaging/entitlements.plist "$APP/Contents/MacOS/python"
fi
sign --entitlements packaging/entitlements.plist "$APP"
run codesign --verify --deep --strict --verbose=2 "$APP"
