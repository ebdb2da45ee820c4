#!/bin/bash
export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128
srun --export=PATH,PYTORCH_CUDA_ALLOC_CONF python pretrain_gpt.py --micro-batch-size 4
