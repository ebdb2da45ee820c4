#!/bin/bash
#SBATCH --nodes=1
CUDA_DEVICE_MAX_CONNECTIONS=1 NCCL_DEBUG=INFO torchrun --nproc-per-node 8 pretrain_gpt.py --bf16
