#!/bin/bash
#SBATCH --nodes=1
set -ex
MAX_TOKENS=9216
PERF_ARGS=(
   --use-dynamic-batch-size
   --max-tokens-per-gpu "${MAX_TOKENS}"   # fits 80 GiB
)
ray job submit --address="http://127.0.0.1:8265" -- python3 -m relax.entrypoints.train --resource '{"actor":[1,8]}' "${PERF_ARGS[@]}"
