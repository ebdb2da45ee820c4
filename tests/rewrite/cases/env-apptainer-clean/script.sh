#!/bin/bash
export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128
srun apptainer exec --nv --cleanenv img.sif python pretrain_gpt.py --micro-batch-size 4
