#!/bin/bash
#SBATCH --nodes=1
SIZES=(4 8 16)
ARGS=()
ARGS[0]=--micro-batch-size
ARGS[1]=${SIZES[0]}
torchrun --nproc-per-node 8 pretrain_gpt.py "${ARGS[@]}" --hidden ${SIZES[1]}
