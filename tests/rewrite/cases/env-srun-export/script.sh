#!/bin/bash
#SBATCH --nodes=2
srun --export=ALL,PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64,NCCL_DEBUG=INFO torchrun --nproc-per-node 8 pretrain_gpt.py --bf16
