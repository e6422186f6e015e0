#!/usr/bin/env bash
# Trains the built-in drafters on a GPU machine that tests/bench/device_setup.sh has set up (docs/train.md).
#   train_device.sh write MINUTES [OPTIONS…]      conversations
#   train_device.sh fit NAME OPTIONS…             a drafter from them; its figures are the last lines of $OUT/NAME.log.txt
#   train_device.sh pack NAME…                    puts drafters into $OUT: one archive, in pieces of 15 MB
#   train_device.sh rates MINUTES RATE…           short runs of DSpark, which only say what they come to
#   train_device.sh pair MINUTES                  both drafters from nothing, side by side: each leaves gaps to the other
#   train_device.sh further MINUTES               both go on, from what `pair` made or from $DSPARK and $DFLASH
# Files stay in /tmp/bench/train between calls. Kernels compiled before, if any: .prompts/ptx.tar.xz.
# MORE: options for every run of the trainer, such as fewer of everything, to try the script on another machine.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ ! -e /tmp/bench/env.sh ] || . /tmp/bench/env.sh
home=${TRAIN_HOME:-/tmp/bench/train}
prompts=${PROMPTS:-.prompts/train.jsonl}
dev=${DEV:-.prompts/dev.jsonl}
python=${PYTHON:-python3}
export MLX_PTX_CACHE_DIR=${MLX_PTX_CACHE_DIR:-/tmp/ptx} MLX_MAX_OPS_PER_BUFFER=${MLX_MAX_OPS_PER_BUFFER:-40}
export TOKENIZERS_PARALLELISM=true
mkdir -p "$home" "$MLX_PTX_CACHE_DIR"
if [ -e .prompts/ptx.tar.xz ] && [ -z "$(ls -A "$MLX_PTX_CACHE_DIR")" ]; then
  tar -C "$MLX_PTX_CACHE_DIR" -xJf .prompts/ptx.tar.xz
fi

# What both drafters have in common. 32 texts x 96 anchors x 10 drafts are about as many rows as 32 x 128 x 7.
SHAPE=(--layers 3 --taps 1,7,14,20,27 --mask-id 7 --proposals 10 --decay 5 --draft-vocabulary 16384)
STEPS=(--texts 32 --anchors 96 --optimiser muon --rate 2e-3 --warmup 100 --rows 8192 --every 100 --save-seconds 9999)

train() {
  # MORE is split on purpose.
  "$python" -m slipstream.commands.train --anyway --dtype "${DTYPE:-float16}" --prompts "$prompts" --work "$home/work" \
    "$@" ${MORE:-}
}

write() {
  local minutes=$1
  shift
  train --only write --conversations 800000 --shard 8192 --width 8192 --answer 224 --invented 0.6 \
    --data-minutes "$minutes" "$@" 2>&1 | tee "$OUT/write.log.txt"
  XZ_OPT="-1 -T0" tar -C "$home/work" -cJf - conversations | split -b 15M -d - "$OUT/conversations.tar.xz."
}

fit() {
  local name=$1
  shift
  train --only fit --network-dtype "${NETWORK:-bfloat16}" --run "$home/$name/run" --output "$home/$name/drafter" \
    --judge-by "$dev" "${STEPS[@]}" "$@" > "$OUT/$name.log.txt" 2>&1 || echo "FAILED: $name"
  tail -n 6 "$OUT/$name.log.txt"
}

pack() {
  local name
  for name in "$@"; do cp "$OUT/$name.log.txt" "$home/$name/drafter/"; done
  tar -C "$home" -cf - work/counts.npy "${@/%//drafter}" | split -b 15M -d - "$OUT/drafters.tar."
}

pair() {
  fit dspark --kind dspark "${SHAPE[@]}" --rank 64 --minutes "$1" &
  fit dflash --kind dflash "${SHAPE[@]}" --minutes "$1" &
  wait
  pack dspark dflash
}

further() {
  local common=(--proposals 10 --decay 5 --rate 1e-3 --warmup 50 --minutes "$1")
  fit dspark-further --kind dspark --from "${DSPARK:-$home/dspark/drafter}" "${common[@]}" &
  fit dflash-further --kind dflash --from "${DFLASH:-$home/dflash/drafter}" "${common[@]}" &
  wait
  pack dspark-further dflash-further
}

rates() {
  local minutes=$1
  shift
  for rate in "$@"; do
    fit "rate-$rate" --kind dspark "${SHAPE[@]}" --rank 64 --minutes "$minutes" --warmup 30 --judge-most 0 --rate "$rate"
  done
}

"$@"
