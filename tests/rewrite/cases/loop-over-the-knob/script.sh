#!/bin/bash
#SBATCH --nodes=1
for mbs in 8 4; do
    torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size $mbs --save /ckpt/$mbs
done
