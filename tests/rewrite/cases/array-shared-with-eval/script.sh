#!/bin/bash
#SBATCH --nodes=1
COMMON=(--micro-batch-size 4 --seq-length 4096)
torchrun --nproc-per-node 8 pretrain_gpt.py "${COMMON[@]}" --save /c
torchrun --nproc-per-node 8 tools/evaluate.py "${COMMON[@]}" --load /c
