"""Makes the environment that mlx-dspark runs in, apart from ours: python tests/bench/peer_env.py DIR

Needs `uv`. Only what its text path imports is installed (250 MB); with all it asks for, audio, video and data
frames included, it would be 800 MB. Can be run twice.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

MLX = "mlx[cpu]==0.32.4" if sys.platform == "linux" else "mlx==0.32.4"
PINS = (MLX, "mlx-lm==0.32.2", "transformers==5.24.0", "pillow==13.0.0", "requests==2.34.2")
# Their own requirements are left out; mlx-vlm is imported for one function of its rotary embeddings.
ALONE = ("mlx-dspark==0.20.3", "mlx-vlm==0.7.10")


def make(folder: Path) -> Path:
    """The new environment's interpreter."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run(["uv", "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
    install = ["uv", "pip", "install", "--quiet", "--python", str(python)]
    subprocess.run([*install, *PINS], check=True)
    subprocess.run([*install, "--no-deps", *ALONE], check=True)
    subprocess.run([str(python), "-c", "import mlx_dspark"], check=True)
    return python


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    print(make(parser.parse_args().folder))


if __name__ == "__main__":
    main()
