#!/bin/bash
#SBATCH --nodes=1
exec > >(tee -a all.log) 2>&1
(
  cd work
  export OMP_NUM_THREADS=8
  torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size 4
) || { echo failed; exit 1; }
