#!/bin/bash
#SBATCH --nodes=1
DS=conf/ds.json
cp $DS out-$(basename $DS)
torchrun --nproc_per_node 8 train.py --deepspeed $DS --per_device_train_batch_size 4
