#!/bin/bash
#SBATCH --nodes=1
srun torchrun --nproc_per_node=8 --rdzv_backend c10d -- -m torchtitan.train --job.config_file ./train.toml --training.local_batch_size=8
