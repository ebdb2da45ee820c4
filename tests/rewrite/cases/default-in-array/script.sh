#!/bin/bash
#SBATCH --nodes=1
SGLANG_ARGS=( --sglang-mem-fraction-static "${ROLLOUT_MEM_UTILIZATION:-0.75}" )
PERF_ARGS=(
   --max-tokens-per-gpu ${MAX_TOKENS:-9216}
)
python3 train.py --colocate ${PERF_ARGS[@]} ${SGLANG_ARGS[@]}
