"""OpenAI's and Anthropic's JavaScript clients against the real engine on a tiny model.

Run with: pytest -m client tests/clients (needs node and npm)
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tiny_server import serving_tiny

from .conftest import node_modules, run

pytestmark = pytest.mark.client

PACKAGES = {
    "openai_sdk.mjs": ("openai@6.49.0", "zod@4.6.7"),
    "anthropic_sdk.mjs": ("@anthropic-ai/sdk@1.14.0",),
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving_tiny(tmp_path_factory.mktemp("model")) as one:
        yield one


@pytest.mark.parametrize("script", PACKAGES)
def test_chat_stream_tools_structure_and_errors(script: str, url: str) -> None:
    folder = node_modules(*PACKAGES[script])
    shutil.copy(Path(__file__).parent / script, folder)
    said = run(["node", script, url], folder)
    assert said.splitlines()[-1:] == ["OK"], said
