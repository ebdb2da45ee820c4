#!/bin/bash
#SBATCH --nodes=2
deepspeed --hostfile hosts --num_gpus=8 --master_port 29501 finetune.py --deepspeed ds.json --per_device_train_batch_size 8
