#!/bin/bash
#SBATCH --nodes=1
declare -A CFG=( [mbs]=4 [lr]=1e-4 )
torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size ${CFG[mbs]} --lr ${CFG[lr]}
