#!/bin/bash
#SBATCH --nodes=1
srun deepspeed train.py --deepspeed=conf/ds.json --per_device_train_batch_size=4 | tee log
