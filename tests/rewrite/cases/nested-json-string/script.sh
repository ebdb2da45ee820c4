#!/bin/bash
#SBATCH --nodes=1
RUNTIME_ENV_JSON="{\"env_vars\": {\"PYTHONPATH\": \"/m\", \"MAX\": \"--max-tokens-per-gpu 9216\"}}"
ray job submit ${RAY_NO_WAIT:+--no-wait} --address="http://127.0.0.1:8265" --runtime-env-json="${RUNTIME_ENV_JSON}" \
   -- python3 -m relax.entrypoints.train --resource '{"actor":[1,4],"rollout":[1,4]}' --fully-async \
   --ref-actor-config '{"tensor_model_parallel_size":1,"max_tokens_per_gpu":16384}' \
   --max-tokens-per-gpu 9216 2>&1 | tee log/x.log
