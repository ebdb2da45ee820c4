#!/bin/bash
#SBATCH --nodes=1
MBS=${1:-${MBS:-4}}
torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size "$MBS"
