#!/usr/bin/env bash
#SBATCH -J relax-vars
set -euo pipefail

TP=${TP:-@tp|2@}
CP=${CP:-@cp|1@}
MAX_CONTEXT=@context|16384@
MAX_TOKENS_PER_GPU=${MAX_TOKENS_PER_GPU:-@tokens|16384@}
MEM_FRACTION=${MEM_FRACTION:-@fraction|0.75@}
LOG_DIR=${LOG_DIR:-logs}
mkdir -p "$LOG_DIR"

launch() {
    local extra=("$@")
    ray job submit --address="http://127.0.0.1:8265" -- \
        python3 -m relax.entrypoints.train \
        --colocate \
        --num-layers @layers@ --hidden-size @hidden@ --num-attention-heads @heads@ \
        --ref-load /ckpt/ref \
        --tensor-model-parallel-size "$TP" --sequence-parallel \
        --context-parallel-size "$CP" --calculate-per-token-loss \
        --use-dynamic-batch-size --max-tokens-per-gpu "$MAX_TOKENS_PER_GPU" \
        --rollout-max-context-len $((MAX_CONTEXT * CP / CP)) \
        --sglang-mem-fraction-static "$MEM_FRACTION" \
        --rollout-num-gpus-per-engine @engine_tp|2@ \
        @more|@ \
        "${extra[@]}" 2>&1 | tee "$LOG_DIR/train.log"
}

ray start --head --num-gpus 8
launch --save /ckpt/out @extra|@
