#!/bin/bash
#SBATCH --nodes=1
torchrun --nproc-per-node 8 pretrain_gpt.py \
    --micro-batch-size 4 \
    --bf16 \

