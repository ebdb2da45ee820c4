#!/bin/bash
#SBATCH --nodes=1
read -r -d '' training_commands <<EOF
openrlhf.cli.train_sft \
   --data.max_len 2048 \
   --train.micro_batch_size 4 \
   --ds.packing_samples
EOF
if [[ ${1} != "slurm" ]]; then
    deepspeed --module $training_commands
fi
