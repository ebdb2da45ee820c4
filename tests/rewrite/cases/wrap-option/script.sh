#!/bin/bash
MBS=4
sbatch --nodes=1 --wrap="torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size $MBS --bf16"
