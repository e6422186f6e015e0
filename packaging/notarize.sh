#!/usr/bin/env bash
# Has Apple notarise the disk image, and staples the ticket to it. NOTARY_PROFILE names credentials that were stored
# once with `xcrun notarytool store-credentials`; on a runner the API key's file, id and issuer are given instead.
# shellcheck source=packaging/steps.sh
. "$(dirname "$0")/steps.sh"
needs_mac
needs_program xcrun "install Xcode's command line tools: xcode-select --install"

if [ -n "${NOTARY_KEY_FILE:-}" ]; then
    needs_variable NOTARY_KEY_ID "the id of App Store Connect's API key"
    needs_variable NOTARY_ISSUER "the issuer of App Store Connect's API key"
    credentials=(--key "$NOTARY_KEY_FILE" --key-id "${NOTARY_KEY_ID:-ID}" --issuer "${NOTARY_ISSUER:-ISSUER}")
else
    needs_variable NOTARY_PROFILE "a profile of xcrun notarytool store-credentials, or set NOTARY_KEY_FILE"
    credentials=(--keychain-profile "${NOTARY_PROFILE:-PROFILE}")
fi
if [ "$DRY" = no ] && [ ! -f "$DMG" ]; then
    say "$DMG is not there; run packaging/dmg.sh first"
    exit 2
fi
if [ "$DRY" = no ] && xcrun stapler validate -q "$DMG" 2>/dev/null; then
    say "$DMG is notarised already"
    exit 0
fi
run xcrun notarytool submit "$DMG" "${credentials[@]}" --wait --timeout 2h
run xcrun stapler staple "$DMG"
run spctl --assess --type open --context context:primary-signature --verbose "$DMG"
