#!/bin/bash
#SBATCH --nodes=2
srun torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --micro-batch-size 4
