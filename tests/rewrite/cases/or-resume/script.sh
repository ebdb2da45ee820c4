#!/bin/bash
#SBATCH --nodes=1
python pretrain_gpt.py --micro-batch-size 4 --fresh || python pretrain_gpt.py --micro-batch-size 4 --resume
