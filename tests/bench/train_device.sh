#!/usr/bin/env bash
# Trains the built-in drafters on a machine with two GPUs that tests/bench/device_setup.sh has set up (docs/train.md).
#   train_device.sh smoke          times both halves of the work and compares two optimisers, about a minute
#   train_device.sh write MINUTES  conversations, half of them on each GPU
#   train_device.sh both MINUTES "OPTIONS OF DSPARK" "OPTIONS OF DFLASH"
#   train_device.sh pack NAME      puts a drafter into $OUT in pieces of 15 MB
# Files stay in /tmp/bench/train between calls.
set -euo pipefail
cd "$(dirname "$0")/../.."
. /tmp/bench/env.sh
home=/tmp/bench/train
mkdir -p $home
export MLX_PTX_CACHE_DIR=${MLX_PTX_CACHE_DIR:-/tmp/ptx} MLX_MAX_OPS_PER_BUFFER=${MLX_MAX_OPS_PER_BUFFER:-100}
prompts=${PROMPTS:-.prompts/train.jsonl}
dev=${DEV:-.prompts/dev.jsonl}

train() {
  python3 -m slipstream.commands.train --dtype float16 --network-dtype bfloat16 --prompts "$prompts" "$@"
}

# GPU NAME DATA OPTIONS…: a drafter from the conversations in DATA.
fit() {
  local gpu=$1 name=$2 data=$3
  shift 3
  mkdir -p "$home/$name"
  ln -sfn "$data/conversations" "$home/$name/conversations"
  CUDA_VISIBLE_DEVICES=$gpu train --only fit --work "$home/$name" --output "$home/$name/drafter" --judge-by "$dev" \
    --log "$home/$name/log.jsonl" --rows 8192 --texts 32 --anchors 128 --every 50 --save-seconds 100 "$@" 2>&1 |
    sed -u "s/^/$name /" | tee "$home/$name/log.txt"
}

smoke() {
  local part
  for part in 0 1; do
    CUDA_VISIBLE_DEVICES=$part train --only write --work $home/small --part $part/2 --conversations 4096 --shard 2048 \
      --width 2048 --answer 96 --seed 7 2>&1 | sed -u "s/^/gpu $part: /" &
  done
  wait
  fit 0 muon $home/small --layers 4 --optimiser muon --rate 1e-3 --warmup 30 --minutes 0.3 --judge-most 32 &
  fit 1 adamw $home/small --layers 4 --optimiser adamw --rate 1e-3 --warmup 30 --minutes 0.3 --judge-most 32 &
  sleep 18
  nvidia-smi --query-gpu=memory.used,utilization.gpu --format=csv
  wait
}

write() {
  local part
  for part in 0 1; do
    CUDA_VISIBLE_DEVICES=$part train --only write --work $home/work --part $part/2 --conversations 800000 --shard 8192 \
      --width 2048 --answer 320 --data-minutes "$1" 2>&1 | sed -u "s/^/gpu $part: /" &
  done
  wait
}

both() {
  # shellcheck disable=SC2086 # options are words
  fit 0 dspark $home/work --minutes "$1" $2 &
  # shellcheck disable=SC2086
  fit 1 dflash $home/work --kind dflash --minutes "$1" $3 &
  wait
  pack dspark
}

pack() {
  split -b 15M -d "$home/$1/drafter/model.safetensors" "$OUT/$1.model.safetensors."
  cp "$home/$1/drafter/config.json" "$OUT/$1.config.json"
  cp "$home/$1/log.txt" "$OUT/$1.log.txt"
  cp "$home/$1/counts.npy" "$OUT/$1.counts.npy"
}

"$@"
