#!/bin/bash
set -ex
source ./model.sh
PERF_ARGS=(--tensor-model-parallel-size @tp|2@ --sequence-parallel --use-dynamic-batch-size --max-tokens-per-gpu @tokens@)
ray job submit ${RAY_NO_WAIT:+--no-wait} --address="http://127.0.0.1:8265" -- python3 -m relax.entrypoints.train \
    --resource '{"actor":[1,4],"rollout":[1,2],"reference":[1,1],"actor_fwd":[1,1]}' --fully-async \
    --ref-actor-config '{"tensor_model_parallel_size":1,"max_tokens_per_gpu":@ref_tokens|16384@}' \
    --ref-load /ckpt/ref --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \
    "${MODEL_ARGS[@]}" "${PERF_ARGS[@]}" --sglang-mem-fraction-static @fraction|0.85@ @extra|@ 2>&1 | tee log.txt
exit ${PIPESTATUS[0]}
