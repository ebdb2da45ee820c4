#!/bin/bash
#SBATCH --nodes=1
BASE=( --recompute-activations --num-workers 4 )
ARGS=(
    "${BASE[@]}"
    --micro-batch-size 4
    --num-workers 8
)
torchrun --nproc-per-node 8 pretrain_gpt.py "${ARGS[@]}"
