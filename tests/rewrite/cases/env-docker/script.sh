#!/bin/bash
export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128
docker run --rm --gpus all -e NCCL_DEBUG=INFO nvcr.io/nvidia/pytorch:24.07 python pretrain_gpt.py --micro-batch-size 4
