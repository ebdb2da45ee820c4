#!/bin/bash
#SBATCH --nodes=1
torchrun --nproc-per-node 8 pretrain_gpt.py \
    --recompute-activations \
    --micro-batch-size 4 \
    --num-workers 8
echo done
