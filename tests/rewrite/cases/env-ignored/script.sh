#!/bin/bash
export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128
env -i PATH="$PATH" HOME="$HOME" BASH_ENV="$BASH_ENV" python pretrain_gpt.py --micro-batch-size 4
