#!/bin/bash
: ${MAX_TOKENS:=8192} ${ROLLOUT_BS:=32}
: "${OUT:=runs/tok${MAX_TOKENS}}"
mkdir -p "$OUT"
python3 train.py --colocate --max-tokens-per-gpu ${MAX_TOKENS} --rollout-batch-size=$ROLLOUT_BS --save "$OUT" 2>&1 | tee "$OUT/log-${MAX_TOKENS}.txt"
