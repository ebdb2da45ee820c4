#!/bin/bash
#SBATCH --nodes=1
export DS_CONFIG=ds.json
srun bash -c "deepspeed train.py --deepspeed 'ds.json' --per_device_train_batch_size 2 --run_name \"a b\""
