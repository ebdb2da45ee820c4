#!/bin/bash
#SBATCH --job-name=titan --nodes=1
CONFIG_FILE=${CONFIG_FILE:-./train.toml}
export LOGLEVEL=INFO
srun torchrun --nnodes 1 --nproc_per_node 8 --rdzv_id 101 --rdzv_backend c10d --rdzv_endpoint "localhost:29500" \
    -m torchtitan.train --job.config_file ${CONFIG_FILE} @extra|@ "$@"
