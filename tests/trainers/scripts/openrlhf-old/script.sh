#!/bin/bash
set -x
ray job submit --address="http://127.0.0.1:8265" \
   -- python3 -m openrlhf.cli.train_ppo_ray \
   --actor_num_nodes 1 \
   --actor_num_gpus_per_node 8 \
   --vllm_num_engines 4 \
   --vllm_tensor_parallel_size 2 \
   --colocate_all_models \
   --vllm_gpu_memory_utilization @util|0.5@ \
   --vllm_enable_sleep --deepspeed_enable_sleep \
   --pretrain /models/base \
   --micro_train_batch_size @micro|8@ \
   --train_batch_size 128 \
   --micro_rollout_batch_size @roll|16@ \
   --rollout_batch_size 1024 \
   --max_len @len|4096@ \
   --zero_stage 3 \
   --bf16 \
   --packing_samples \
   @gc|--gradient_checkpointing@ @extra|@
