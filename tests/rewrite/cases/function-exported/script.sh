#!/bin/bash
#SBATCH --nodes=1
work() {
    torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size 4 --rank $SLURM_PROCID
}
export -f work
srun bash -c work
