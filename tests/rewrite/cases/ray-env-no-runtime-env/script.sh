#!/bin/bash
ray job submit --address="http://127.0.0.1:8265" --working-dir . \
   -- python3 train.py --colocate --max-tokens-per-gpu 9216 2>&1 | tee log
