#!/bin/bash
#SBATCH --nodes=1
n=0
until torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size 4 --load /c; do
    n=$((n + 1))
    [ $n -ge 3 ] && exit 1
done
