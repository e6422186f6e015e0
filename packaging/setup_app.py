"""py2app's setup file. Run it from this folder: in the root it would read pyproject.toml's dependencies and refuse.

cd packaging && ../build/env/bin/python setup_app.py py2app --dist-dir ../build/dist --bdist-base ../build/py2app
"""

from __future__ import annotations

from importlib.util import find_spec

from setuptools import setup  # pyright: ignore[reportMissingModuleSource]

import bundle

setup(
    name=bundle.NAME,
    version=bundle.version(),
    app=["launch.py"],
    options={"py2app": bundle.options(tuple(name for name in bundle.PACKAGES if find_spec(name)))},
    setup_requires=[],
    install_requires=[],
)
