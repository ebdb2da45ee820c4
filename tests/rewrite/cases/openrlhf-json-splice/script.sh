#!/bin/bash
WORKSPACE_DIR=/work/rl
SAVE_PATH=/ckpt
MODEL_NAME=m1
python -m openrlhf.models.remote_rm.math_verifier --dataset d.json --input_key prompt > rm.log 2>&1 &
REMOTE_RM_PID=$!
sleep 10
MAX_RETRIES=1
RETRY_COUNT=0
while [ $RETRY_COUNT -lt $MAX_RETRIES ]; do
    ray job submit --address="http://127.0.0.1:8266" \
   --runtime-env-json='{"working_dir": "'${WORKSPACE_DIR}'","env_vars":{"VLLM_USE_V1":"1"}, "excludes":["wandb",".git"]}' \
   -- python -m openrlhf.cli.train_ppo_ray \
   --ref_num_nodes 1 \
   --vllm_gpu_memory_utilization 0.45 \
   --enforce_eager \
   --pretrain /m/base \
   --save_path ${SAVE_PATH}/${MODEL_NAME} \
   --micro_train_batch_size 2 \
   --micro_rollout_batch_size 4 && break
    RETRY_COUNT=$((RETRY_COUNT + 1))
done
pkill -f math_verifier
