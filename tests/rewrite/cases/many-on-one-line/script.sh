#!/bin/bash
#SBATCH --nodes=1
torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --micro-batch-size 4 --recompute-granularity selective --num-workers 8 --bf16
