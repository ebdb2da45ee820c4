#!/bin/bash
#SBATCH --job-name=dpo
#SBATCH --nodes=1
GPUS=8
MAXLEN=@len|4096@

read -r -d '' training_commands <<EOF
openrlhf.cli.@cli|train_sft@ \
   --data.max_len ${MAXLEN} \
   --train.batch_size @batch|256@ \
   --train.micro_batch_size @micro|4@ \
   --adam.lr 5e-7 \
   --ds.zero_stage @stage|3@ \
   @gc|@ @extra|@
EOF

echo "commands: ${#training_commands} characters"
srun bash -c " \
    torchrun --nproc_per_node $GPUS --nnodes 1 --node_rank 0 \
    --master_addr localhost --master_port 9901 -m ${training_commands}"
