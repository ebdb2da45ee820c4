#!/bin/bash
#SBATCH --nodes=1
for seed in 1 2 3; do
    torchrun --nproc-per-node 8 pretrain_gpt.py \
        --seed "$seed" \
        --micro-batch-size 4 \
        --save "/ckpt/$seed" > "log.$seed" 2>&1
done
