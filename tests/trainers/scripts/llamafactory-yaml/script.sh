#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus=8
export WANDB_MODE=offline
FORCE_TORCHRUN=1 NNODES=1 NODE_RANK=0 llamafactory-cli train conf/full_sft.yaml save_strategy=steps @extra|@
