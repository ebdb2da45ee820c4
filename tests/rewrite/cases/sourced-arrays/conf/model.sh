MODEL_ARGS=(--num-layers 36)
PERF_ARGS=(--max-tokens-per-gpu 9216 --use-dynamic-batch-size)
