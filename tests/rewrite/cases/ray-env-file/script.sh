#!/bin/bash
ray job submit --runtime-env runtime_env.yaml \
   -- python3 train.py --colocate --max-tokens-per-gpu 9216
