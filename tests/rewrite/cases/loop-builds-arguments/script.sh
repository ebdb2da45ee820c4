#!/bin/bash
#SBATCH --nodes=1
CMD=""
for a in --bf16 "--micro-batch-size 4" "--lr 1e-4"; do
    CMD="$CMD $a"
done
torchrun --nproc-per-node 8 pretrain_gpt.py $CMD
