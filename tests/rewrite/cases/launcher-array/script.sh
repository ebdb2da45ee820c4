#!/bin/bash
#SBATCH --nodes=1
LAUNCHER=(accelerate launch --num_processes 8 --config_file acc.yaml)
PROGRAM=(train_dpo.py --per_device_train_batch_size 4 --beta 0.1)
srun "${LAUNCHER[@]}" "${PROGRAM[@]}" --bf16 true
