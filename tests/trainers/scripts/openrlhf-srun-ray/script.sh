#!/bin/bash
#SBATCH -p batch
#SBATCH -N 1
#SBATCH --mem=0
#SBATCH --overcommit
RAY_VERSION=2.12.0
IMAGE_NAME="registry.example/pytorch:24.07-py3"
nodes=($(scontrol show hostnames $SLURM_JOB_NODELIST))
node_1=${nodes[0]}
srun --nodes=1 --ntasks=1 -w "$node_1" --container-image="$IMAGE_NAME" bash -c \
  "ray start --head --node-ip-address=$node_1 --port=6379 --block" &
sleep 10s
srun --overlap --nodes=1 --ntasks=1 -w "$node_1" --container-image="$IMAGE_NAME" bash -c \
"ray job submit --address=http://localhost:8265 \
  --runtime-env-json='{\"working_dir\": \"/openrlhf\"}' \
  -- python3 -m openrlhf.cli.train_ppo_ray \
  --ref.num_nodes 1 \
  --actor.num_nodes 1 \
  --train.batch_size @batch|128@ \
  --train.micro_batch_size @micro|8@ \
  --rollout.batch_size 1024 \
  --rollout.micro_batch_size @roll|16@ \
  --data.max_len @len|4096@ \
  --ds.zero_stage @stage|3@ \
  --vllm.num_engines 4 --vllm.tensor_parallel_size @engine_tp|2@ \
  --vllm.gpu_memory_utilization @util|0.5@ \
  @mode|--train.colocate_all --vllm.enable_sleep --ds.enable_sleep@ \
  @gc|--actor.gradient_checkpointing_enable@ \
  @extra|@ \
  --data.prompt_dataset org/prompts \
  --ds.packing_samples"
status=$?
wait
exit $status
