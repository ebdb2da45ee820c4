#!/bin/bash
#SBATCH --nodes=1
MAX_CONTEXT_LEN=32768
CP_SIZE=4
PERF_ARGS=(
   --context-parallel-size ${CP_SIZE}
   --use-dynamic-batch-size
   --max-tokens-per-gpu $((MAX_CONTEXT_LEN / CP_SIZE))
)
python3 train.py --rollout-max-context-len $MAX_CONTEXT_LEN ${PERF_ARGS[@]}
