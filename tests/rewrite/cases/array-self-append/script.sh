#!/bin/bash
#SBATCH --nodes=1
ARGS=(--bf16)
ARGS=("${ARGS[@]}" --micro-batch-size 4)
ARGS=(--lr 1e-4 "${ARGS[@]}")
torchrun --nproc-per-node 8 pretrain_gpt.py "${ARGS[@]}"
