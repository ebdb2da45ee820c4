#!/bin/bash
#SBATCH --gpus=8
set -e
CP_SIZE=@cp|1@
MAX_CONTEXT_LEN=@context|16384@
ROLLOUT_MEM_UTILIZATION="${ROLLOUT_MEM_UTILIZATION:-@fraction|0.75@}"
COMMON="--num-layers @layers@ --hidden-size @hidden@ --num-attention-heads @heads@ --ref-load /ckpt/ref"
ARGS=(
    --tensor-model-parallel-size @tp|2@ --sequence-parallel --context-parallel-size $CP_SIZE
    --use-dynamic-batch-size --max-tokens-per-gpu $((MAX_CONTEXT_LEN / CP_SIZE))
    --sglang-mem-fraction-static "${ROLLOUT_MEM_UTILIZATION}"
    --rollout-num-gpus-per-engine @engine_tp|2@
)
if [ "@recompute|no@" = yes ]; then
    ARGS+=(--recompute-granularity full --recompute-method uniform --recompute-num-layers 1)
fi
ray start --head
ray job submit --address=http://127.0.0.1:8265 -- python3 train.py --actor-num-nodes 1 --colocate \
    $COMMON ${ARGS[@]} @extra|@
