#!/bin/bash
#SBATCH --job-name=qwen3-grpo
#SBATCH --nodes=1 --gres=gpu:8 --mem=500
#SBATCH --time=30
#SBATCH --oom-retry --oom-max-retries=6
# Relax: GRPO on Qwen3 4B, trainer and rollout engines on the same eight GPUs.
set -e

CKPT_ARGS=(
   --hf-checkpoint /models/Qwen3-4B
   --ref-load /models/Qwen3-4B_torch_dist
   --save /ckpt/qwen3-grpo
   --save-interval 20
)

ROLLOUT_ARGS=(
   --prompt-data /data/dapo-math-17k.jsonl
   --input-key prompt
   --num-rollout 3
   --rollout-batch-size 32
   --n-samples-per-prompt 8
   --rollout-max-response-len 4096
   --global-batch-size 256
   --balance-data
)

PERF_ARGS=(
   --tensor-model-parallel-size 2
   --sequence-parallel
   --use-dynamic-batch-size
   --max-tokens-per-gpu 12288   # the longest that fitted last month
)

OPTIMIZER_ARGS=(
   --optimizer adam
   --lr 1e-6
   --weight-decay 0.1
)

SGLANG_ARGS=(
   --rollout-num-gpus-per-engine 2
   --sglang-mem-fraction-static 0.7
)

ray start --head --num-gpus 8 --disable-usage-stats
ray job submit --address="http://127.0.0.1:8265" \
   -- python3 -m relax.entrypoints.train \
   --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate \
   --num-layers 36 --hidden-size 2560 --num-attention-heads 32 \
   "${CKPT_ARGS[@]}" "${ROLLOUT_ARGS[@]}" "${PERF_ARGS[@]}" "${OPTIMIZER_ARGS[@]}" "${SGLANG_ARGS[@]}"
