#!/usr/bin/env bash
# Trains a built-in drafter on a GPU machine that tests/bench/device_setup.sh has set up (docs/train.md).
#   train_device.sh write MINUTES           conversations
#   train_device.sh fit NAME OPTIONS…       a drafter from them
#   train_device.sh pack NAME               puts a drafter into $OUT, in pieces of 15 MB
#   train_device.sh last MINUTES MINUTES OPTIONS…   all three; what went wrong is in the logs in $OUT
# Files stay in /tmp/bench/train between calls. Kernels compiled before, if any: .prompts/ptx.tar.xz.
set -euo pipefail
cd "$(dirname "$0")/../.."
. /tmp/bench/env.sh
home=/tmp/bench/train
prompts=${PROMPTS:-.prompts/train.jsonl}
dev=${DEV:-.prompts/dev.jsonl}
export MLX_PTX_CACHE_DIR=${MLX_PTX_CACHE_DIR:-/tmp/ptx} MLX_MAX_OPS_PER_BUFFER=${MLX_MAX_OPS_PER_BUFFER:-100}
export TOKENIZERS_PARALLELISM=true
mkdir -p $home $MLX_PTX_CACHE_DIR
if [ -e .prompts/ptx.tar.xz ] && [ -z "$(ls -A $MLX_PTX_CACHE_DIR)" ]; then
  tar -C $MLX_PTX_CACHE_DIR -xJf .prompts/ptx.tar.xz
fi

train() {
  python3 -m slipstream.commands.train --dtype float16 --network-dtype bfloat16 --prompts "$prompts" --work $home/work "$@"
}

write() {
  train --only write --conversations 800000 --shard 8192 --width 8192 --answer 320 --data-minutes "$1" 2>&1 |
    tee "$OUT/write.log.txt"
}

fit() {
  local name=$1
  shift
  train --only fit --output "$home/$name/drafter" --judge-by "$dev" --rows 8192 --texts 32 --anchors 128 --every 100 \
    --save-seconds 9999 "$@" > "$OUT/$name.log.txt" 2>&1 || echo "FAILED: $name"
  tail -n 6 "$OUT/$name.log.txt"
}

pack() {
  split -b 15M -d "$home/$1/drafter/model.safetensors" "$OUT/$1.model.safetensors."
  cp "$home/$1/drafter/config.json" "$OUT/$1.config.json"
  cp "$home/work/counts.npy" "$OUT/$1.counts.npy"
}

last() {
  local writing=$1 fitting=$2
  shift 2
  write "$writing" || echo "FAILED: write"
  fit dspark --minutes "$fitting" "$@"
  pack dspark
}

"$@"
