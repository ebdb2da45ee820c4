#!/bin/bash
#SBATCH --nodes=1
MBS_7B=4
SIZE=7B
key="MBS_${SIZE}"
torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size ${!key}
