#!/bin/bash
#SBATCH --nodes=1
accelerate launch --config_file zero.yaml sft.py --model_name_or_path m --per_device_train_batch_size 4
