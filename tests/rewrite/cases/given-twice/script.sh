#!/bin/bash
#SBATCH --nodes=1
ARGS=(
    --micro-batch-size 8
    --lr 1e-4
    --micro-batch-size 4
)
torchrun --nproc-per-node 8 pretrain_gpt.py "${ARGS[@]}"
