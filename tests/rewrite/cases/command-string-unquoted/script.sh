#!/bin/bash
#SBATCH --nodes=1
OPTIONS=" \
 --micro-batch-size 4 \
 --seq-length 4096 \
 --bf16 \
"
run_cmd="python -u pretrain_gpt.py ${OPTIONS}"
srun -l --container-image img sh -c "${run_cmd}"
