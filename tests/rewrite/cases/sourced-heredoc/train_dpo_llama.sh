set -x
read -r -d '' training_commands <<EOF
openrlhf.cli.train_dpo \
   --train.batch_size 256 \
   --train.micro_batch_size 2 \
   --ds.zero_stage 3
EOF

if [[ ${1} != "slurm" ]]; then
    deepspeed --module $training_commands
fi
