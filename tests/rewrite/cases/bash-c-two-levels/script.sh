#!/bin/bash
#SBATCH --nodes=2
srun bash -c "source /etc/profile; bash -c 'torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size 4 --title \"a b\"'"
