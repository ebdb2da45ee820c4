#!/bin/bash
python3 train.py --colocate \
   --max-tokens-per-gpu \
      8192 \
   --log-probs-chunk-size \
      1024 \
   --rollout-batch-size 32
