#!/usr/bin/env bash
# Trains the built-in drafters on a GPU machine that tests/bench/device_setup.sh has set up. Not for a Mac.
#   train_device.sh smoke|write|fit|pack ...   (docs/train.md says how the built-in pair was made with it)
# Files stay in /tmp/bench/train between calls; what comes back is put into $OUT in pieces of 15 MB.
set -euo pipefail
cd "$(dirname "$0")/../.."
. /tmp/bench/env.sh
home=/tmp/bench/train
mkdir -p $home
export MLX_PTX_CACHE_DIR=${MLX_PTX_CACHE_DIR:-/tmp/ptx}
prompts=${PROMPTS:-.prompts/train.jsonl}
dev=${DEV:-.prompts/dev.jsonl}
train() { python3 -m slipstream.commands.train --dtype float16 --network-dtype bfloat16 --prompts "$prompts" "$@"; }
fit() { # NAME options…: trains on the conversations in $home/work/conversations, keeps the run in $home/NAME
  local name=$1; shift
  mkdir -p "$home/$name"
  ln -sfn $home/work/conversations "$home/$name/conversations"
  train --only fit --work "$home/$name" --output "$home/$name/drafter" --log "$home/$name/log.jsonl" --judge-by "$dev" \
    --rows 8192 --texts 32 --anchors 128 --every 50 --save-seconds 120 "$@" 2>&1 | tee "$home/$name/log.txt"
}
pack() { # NAME: the drafter in pieces
  split -b 15M -d "$home/$1/drafter/model.safetensors" "$OUT/$1.model.safetensors."
  cp "$home/$1/drafter/config.json" "$OUT/$1.config.json"
  cp "$home/$1/log.txt" "$OUT/$1.log.txt"
}
"$@"
