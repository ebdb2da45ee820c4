#!/bin/bash
#SBATCH --nodes=1
if ! torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size 4 --save /c; then
    echo "train failed" >&2
    exit 1
fi
