#!/bin/bash
#SBATCH --nodes=1
ARGS=(
    --micro-batch-size 1
    --recompute-granularity selective
    --bf16
)
torchrun --nproc-per-node 8 pretrain_gpt.py "${ARGS[@]}"
