#!/bin/bash
ray job submit \
   --runtime-env-json='{"env_vars": {"NCCL_SHM_DISABLE": "1", "NCCL_DEBUG": "WARN"}}' \
   -- python3 train.py --colocate --max-tokens-per-gpu 9216
