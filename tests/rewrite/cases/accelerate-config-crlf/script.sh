#!/bin/bash
#SBATCH --nodes=1
ACC=conf/zero.yaml
srun accelerate launch --config_file="$ACC" -m trl.scripts.sft --model_name_or_path m --per_device_train_batch_size 4
