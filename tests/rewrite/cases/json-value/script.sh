#!/bin/bash
#SBATCH --nodes=1
ray job submit --address=http://127.0.0.1:8265 --runtime-env-json='{"env_vars": {"PYTHONPATH": "/m"}}' -- python3 train.py \
   --train-env-vars '{"A": "1"}' \
   --max-tokens-per-gpu 9216
