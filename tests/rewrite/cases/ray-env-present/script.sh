#!/bin/bash
ray job submit --address="http://127.0.0.1:8265" \
   --runtime-env-json='{"env_vars": {"PYTHONPATH": "/m", "NCCL_BUFFSIZE": "4194304", "NCCL_DEBUG": "WARN"}}' \
   -- python3 train.py --colocate --max-tokens-per-gpu 9216
