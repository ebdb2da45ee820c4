#!/bin/bash
#SBATCH --nodes=1
STR="--micro-batch-size 4 --bf16"
read -r -a ARGS <<< "$STR"
torchrun --nproc-per-node 8 pretrain_gpt.py "${ARGS[@]}"
