#!/bin/bash
#SBATCH --nodes=1
MBS=${1:-4}
NAME=${2:-base}
torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size $MBS --save /ckpt/$NAME
