#!/bin/bash
#SBATCH --nodes=2
srun --nodes=1 --ntasks=1 trl vllm-serve --model /models/base --tensor_parallel_size 8 --gpu_memory_utilization 0.9 &
sleep 60
srun --nodes=1 --ntasks=1 accelerate launch --config_file acc.yaml --num_processes 8 train_grpo.py \
    --per_device_train_batch_size 8 \
    --vllm_server_host node02 \
    --gradient_accumulation_steps 2 &
wait
