#!/bin/bash
#SBATCH --nodes=1
HOSTS=$(hostname)
deepspeed --num_gpus=8 pretrain.py --deepspeed --deepspeed_config "configs/ds config.json" --seq 2048
