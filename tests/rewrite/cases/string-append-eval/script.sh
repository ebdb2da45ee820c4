#!/bin/bash
#SBATCH --nodes=1
CMD="torchrun --nproc-per-node 8 pretrain_gpt.py"
CMD="$CMD --micro-batch-size 4"
CMD+=" --data-path '/data/with blank'"
echo "$CMD"
eval "$CMD"
