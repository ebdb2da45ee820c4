#!/bin/bash
#SBATCH --nodes=1
time torchrun --nproc-per-node 8 pretrain_gpt.py --bf16 --micro-batch-size 4
