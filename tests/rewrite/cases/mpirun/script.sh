#!/bin/bash
#SBATCH --nodes=2
mpirun -np 16 --allow-run-as-root -x NCCL_DEBUG=INFO --mca btl ^openib python pretrain_gpt.py --micro-batch-size 4 --bf16
