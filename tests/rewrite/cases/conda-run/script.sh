#!/bin/bash
#SBATCH --nodes=1
conda run --no-capture-output -n train python train_sft.py --per_device_train_batch_size 8 --learning_rate 2e-5
