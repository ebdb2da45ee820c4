#!/bin/bash
#SBATCH --nodes=1
USE_LORA=0
if [ "$USE_LORA" -eq 1 ]; then
    MBS=16
else
    MBS=4
fi
torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size $MBS
