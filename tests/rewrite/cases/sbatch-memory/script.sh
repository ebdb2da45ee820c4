#!/bin/bash
#SBATCH --job-name=x
#SBATCH --mem=100G   # host memory
#SBATCH --time=01:00:00
# --mem=100G
torchrun --nproc-per-node 8 pretrain_gpt.py --num-workers 8
