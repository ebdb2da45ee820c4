#!/bin/bash
#SBATCH --nodes=2
CONFIG=${CONFIG:-conf/sft.yaml}
export FORCE_TORCHRUN=1
srun bash -c "NODE_RANK=\$SLURM_PROCID llamafactory-cli train $CONFIG per_device_train_batch_size=4 output_dir=/out"
