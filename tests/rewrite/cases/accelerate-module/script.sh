#!/bin/bash
#SBATCH --nodes=1
accelerate launch --multi_gpu --num_processes=8 --mixed_precision bf16 -m my.train_sft --per_device_train_batch_size=8 --bf16
