# Sourced by the other scripts: what they share. Each runs from the repository's root, stops at the first error,
# can be run again, and with --dry-run prints what it would do and changes nothing, on any system.
# shellcheck shell=bash

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

NAME=Slipstream
VERSION=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' core/slipstream/__init__.py)
APP=build/dist/$NAME.app
DMG=build/dist/$NAME-$VERSION-arm64.dmg
export NAME VERSION APP DMG
# The floor, for the linker and for uv, which then takes the wheels for it and not those of this Mac's own version.
export MACOSX_DEPLOYMENT_TARGET=14.0 UV_PYTHON_DOWNLOADS=never

DRY=no
for argument in "$@"; do
    case $argument in
    --dry-run) DRY=yes ;;
    *)
        echo "$0: what is $argument? Only --dry-run is known" >&2
        exit 2
        ;;
    esac
done

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

# run COMMAND...: do it, or only say it.
run() {
    printf '+ %s\n' "$*"
    if [ "$DRY" = no ]; then "$@"; fi
}

# needs_mac: these steps exist on macOS alone.
needs_mac() {
    if [ "$DRY" = no ] && [ "$(uname -sm)" != "Darwin arm64" ]; then
        say "this needs macOS on Apple silicon; --dry-run works anywhere"
        exit 2
    fi
}

# needs_program NAME HINT
needs_program() {
    if [ "$DRY" = no ] && ! command -v "$1" >/dev/null; then
        say "$1 is needed; $2"
        exit 2
    fi
}

# needs_variable NAME MEANING: a secret, or a name that belongs to one. Never printed.
needs_variable() {
    if [ -z "${!1:-}" ]; then
        if [ "$DRY" = yes ]; then
            say "$1 would have to be set: $2"
        else
            say "set $1: $2"
            exit 2
        fi
    fi
}

# once STEP COMMAND...: skipped when it was done before with the same sources. `rm -r build` forgets.
once() {
    local mark step=$1
    mark=build/steps/$step-$VERSION-$(sources)
    shift
    if [ "$DRY" = no ] && [ -e "$mark" ]; then
        say "$step is done already"
        return
    fi
    "$@"
    if [ "$DRY" = no ]; then
        mkdir -p build/steps
        touch "$mark"
    fi
}

# What the app is made of, as one number.
sources() {
    find core app resources packaging pyproject.toml -type f ! -name '*.pyc' -print0 | sort -z | xargs -0 cat | cksum | cut -d' ' -f1
}
