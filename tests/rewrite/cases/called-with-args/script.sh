#!/bin/bash
#SBATCH --nodes=1
export NCCL_DEBUG=WARN
srun bash train/run.sh --lr 1e-4
