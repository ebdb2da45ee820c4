#!/bin/bash
#SBATCH --nodes=1
export CUDA_VISIBLE_DEVICES=0,1,2,3 PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512
export HF_HOME=/cache
srun bash -c "accelerate launch train_sft.py --per_device_train_batch_size 8"
