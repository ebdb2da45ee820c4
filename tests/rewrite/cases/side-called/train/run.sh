#!/bin/bash
set -e
# --micro-batch-size 8 does not fit
srun python3 pretrain_gpt.py --micro-batch-size 4 --lr 1e-4 > log 2>&1
