#!/bin/bash
export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128
srun --export=NONE python pretrain_gpt.py --micro-batch-size 4
