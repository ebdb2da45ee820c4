#!/bin/bash
#SBATCH --nodes=1
ARGS=(--micro-batch-size 8 --old)
ARGS=(
    --micro-batch-size 4
    --bf16
)
torchrun --nproc-per-node 8 pretrain_gpt.py "${ARGS[@]}"
