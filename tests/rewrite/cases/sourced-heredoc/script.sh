#!/bin/bash
#SBATCH --nodes=2
readonly training_script="train_dpo_llama.sh"
readonly GPUS_PER_NODE=8
source ./${training_script} slurm
srun bash -c "torchrun \
  --nproc_per_node $GPUS_PER_NODE --nnodes $SLURM_NNODES --node_rank \$SLURM_PROCID \
  -m ${training_commands}"
