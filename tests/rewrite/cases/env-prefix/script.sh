#!/bin/bash
#SBATCH --nodes=1
NCCL_BUFFSIZE=4194304 CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun --nproc-per-node 8 pretrain_gpt.py --bf16
