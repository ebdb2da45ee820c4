#!/bin/bash
#SBATCH --nodes=1
deepspeed train.py --deepspeed ds.json --per_device_train_batch_size 2
