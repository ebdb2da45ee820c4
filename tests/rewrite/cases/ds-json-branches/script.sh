#!/bin/bash
#SBATCH --nodes=1
if [ "${BIG:-0}" = 1 ]; then
    DS=conf/big.json
else
    DS=conf/small.json
fi
deepspeed train.py --deepspeed $DS --per_device_train_batch_size 2
