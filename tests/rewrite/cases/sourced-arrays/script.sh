#!/bin/bash
#SBATCH --nodes=1
SCRIPT_DIR="conf"
source "${SCRIPT_DIR}/model.sh"
ray job submit --address=http://127.0.0.1:8265 -- python3 train.py --colocate ${MODEL_ARGS[@]} ${PERF_ARGS[@]}
