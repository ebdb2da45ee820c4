#!/bin/bash
SCRIPT_DIR="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" &>/dev/null && pwd)"
source "${SCRIPT_DIR}/models/m.sh"
PERF_ARGS=( --use-dynamic-batch-size --max-tokens-per-gpu 9216 )
ray job submit --address="http://127.0.0.1:8265" \
   -- python3 train.py --colocate ${MODEL_ARGS[@]} ${PERF_ARGS[@]}
