#!/bin/bash
MODEL=/models/base
UTIL=${UTIL:-@util|0.9@}
exec python3 -m vllm.entrypoints.openai.api_server --model "$MODEL" --gpu-memory-utilization "$UTIL" \
    --max_model_len @len|32768@ --tensor_parallel_size @tp|1@ @extra|@
