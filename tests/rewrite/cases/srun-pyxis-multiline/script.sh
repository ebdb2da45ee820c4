#!/bin/bash
#SBATCH -N 2 --ntasks-per-node=8 --gpus-per-node=8
DIR=$(pwd)
DATETIME=$(date +'date_%y-%m-%d_time_%H-%M-%S')
mkdir -p $DIR/logs
options=" \
    --use-flash-attn \
    --micro-batch-size 4 \
    --global-batch-size 1024 \
    --exit-duration-in-mins 230 "
run_cmd="cd $DIR && python -u pretrain_gpt.py ${options}"
srun -l \
     --container-image "nvcr.io/nvidia/pytorch:23.04-py3" \
     --container-mounts "/lustre:/lustre,$DIR:/ws" \
     --output=$DIR/logs/%x_%j_$DATETIME.log sh -c "${run_cmd}"
set +x
