#!/bin/bash
#SBATCH --nodes=1
export PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:128"
export NCCL_DEBUG=WARN
python3 train.py --colocate --max-tokens-per-gpu 9216
