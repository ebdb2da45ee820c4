#!/bin/bash
#SBATCH --nodes=1
ARGS="--per_device_train_batch_size 8 --bf16"
deepspeed --num_gpus 8 train_sft.py $ARGS --deepspeed ds.json
deepspeed --num_gpus 8 train_dpo.py $ARGS --deepspeed ds.json --beta 0.1
