#!/bin/bash
export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128
docker run --rm -e PYTORCH_CUDA_ALLOC_CONF=backend:native img python pretrain_gpt.py --micro-batch-size 4
