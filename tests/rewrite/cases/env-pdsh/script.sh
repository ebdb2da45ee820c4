#!/bin/bash
export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128
pdsh -w n1,n2 'cd /w; python pretrain_gpt.py --micro-batch-size 4'
