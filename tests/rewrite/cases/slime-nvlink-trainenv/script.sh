#!/bin/bash
#SBATCH --job-name=cov
#SBATCH --nodes=1

set -exuo pipefail
SCRIPT_DIR="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" &>/dev/null && pwd)"
CKPT_INTERVAL="${CKPT_INTERVAL:-10}"
DS="${DS:-/data/cov.jsonl}"

# -------------------- parallelism / memory --------------------
# --max-tokens-per-gpu 24576 leaves headroom for a few short sequences
PERF_ARGS=(
   --tensor-model-parallel-size  2
   --sequence-parallel
   --recompute-granularity full
   --recompute-method      uniform
   --recompute-num-layers  1

   --use-dynamic-batch-size
   --max-tokens-per-gpu    24576
   --log-probs-chunk-size  1024     # keep in step with --max-tokens-per-gpu
)
BACKEND_ARGS=(
   --update-weight-buffer-size $((512 * 1024 * 1024))
   --train-env-vars '{"PYTORCH_CUDA_ALLOC_CONF":"expandable_segments:True"}'
)
EVAL_ARGS=(
   --eval-interval              "${CKPT_INTERVAL}"
   --eval-prompt-data           "${DS}" "${DS}"
)
WANDB_ARGS=()
if [ -n "${WANDB_API_KEY:-}" ]; then
   WANDB_ARGS=( --use-wandb --wandb-project "cov" )
fi
SGLANG_ARGS=(
   --rollout-num-gpus-per-engine 1
   --sglang-mem-fraction-static  0.7
)
ray start --head --node-ip-address "${MASTER_ADDR:-127.0.0.1}" --num-gpus 4 --disable-usage-stats
ray job submit --address="http://127.0.0.1:8265" \
   --runtime-env-json='{"env_vars": {"PYTHONPATH": "/root/Megatron-LM/", "CUDA_DEVICE_MAX_CONNECTIONS": "1"}}' \
   -- python3 train.py \
   --actor-num-nodes 1 --actor-num-gpus-per-node 4 --colocate \
   "${PERF_ARGS[@]}" "${BACKEND_ARGS[@]}" "${EVAL_ARGS[@]}" \
   ${WANDB_ARGS[@]+"${WANDB_ARGS[@]}"} "${SGLANG_ARGS[@]}"
