#!/bin/bash
#SBATCH --job-name=relax-grpo
#SBATCH --nodes=1
#SBATCH --gres=gpu:8
#SBATCH --output=logs/%x-%j.out

# for rerun the task
pkill -9 sglang
sleep 3
ray stop --force
pkill -9 ray
pkill -9 python

set -ex

# will prevent ray from buffering stdout/stderr
export PYTHONUNBUFFERED=16

MODEL_ARGS=(
   --swiglu --num-layers @layers@ --hidden-size @hidden@
   --num-attention-heads @heads@ --group-query-attention --num-query-groups @kv_heads@
   --use-rotary-position-embeddings --disable-bias-linear --normalization "RMSNorm"
   --norm-epsilon 1e-6 --kv-channels 128 --qk-layernorm
)

CKPT_ARGS=(
   --hf-checkpoint /models/base
   #--hf-checkpoint /models/base-fp8
   --ref-load /models/base_torch_dist
   --load /ckpt/run/
   --save /ckpt/run/
   --save-interval 20
)

ROLLOUT_ARGS=(
   --prompt-data /data/dapo-math-17k.jsonl
   --input-key prompt
   --label-key label
   --apply-chat-template
   --rollout-shuffle
   --rm-type deepscaler
   --num-rollout 3000
   --rollout-batch-size 32
   --n-samples-per-prompt 8
   --rollout-max-response-len @response|8192@
   @context|@
   --rollout-temperature 1
   --global-batch-size 256
   --balance-data
)

PERF_ARGS=(
   --tensor-model-parallel-size @tp|2@
   --sequence-parallel
   --pipeline-model-parallel-size @pp|1@
   --context-parallel-size @cp|1@
   @percp|@

   @recompute|@

   # --micro-batch-size 1   # avoids OOM, slow
   @batching|--use-dynamic-batch-size@
   @tokens@
)

GRPO_ARGS=(
   --advantage-estimator grpo
   --use-kl-loss
   --kl-loss-coef 0.00
   --kl-loss-type low_var_kl
   --eps-clip 0.2
   --eps-clip-high 0.28
)

OPTIMIZER_ARGS=(
   --optimizer adam
   --lr 1e-6
   --lr-decay-style constant
   --weight-decay 0.1
   --adam-beta1 0.9
   --adam-beta2 0.98
   @offload|@
)

SGLANG_ARGS=(
   --rollout-num-gpus-per-engine @engine_tp|2@
   --sglang-mem-fraction-static @fraction|0.7@
   @sglang|@
)

MISC_ARGS=(
   # default dropout in megatron is 0.1
   --attention-dropout 0.0
   --hidden-dropout 0.0
   --accumulate-allreduce-grads-in-fp32
   --attention-softmax-in-fp32
   @extra|@
)

# launch the master node of ray in container
export MASTER_ADDR=${MASTER_ADDR:-127.0.0.1}
ray start --head --node-ip-address ${MASTER_ADDR} --num-gpus 8 --disable-usage-stats

RUNTIME_ENV_JSON="{
  \"env_vars\": {
    \"PYTHONPATH\": \"/root/Megatron-LM/\",
    \"CUDA_DEVICE_MAX_CONNECTIONS\": \"1\"
  }
}"

ray job submit --address="http://127.0.0.1:8265" \
   --runtime-env-json="${RUNTIME_ENV_JSON}" \
   -- python3 -m relax.entrypoints.train \
   --resource '{"actor":[1,8],"rollout":[1,8]}' \
   @mode|--colocate@ \
   "${MODEL_ARGS[@]}" \
   "${CKPT_ARGS[@]}" \
   "${ROLLOUT_ARGS[@]}" \
   "${OPTIMIZER_ARGS[@]}" \
   "${GRPO_ARGS[@]}" \
   "${PERF_ARGS[@]}" \
   "${SGLANG_ARGS[@]}" \
   "${MISC_ARGS[@]}"
