#!/bin/bash
FLAG=--max-tokens-per-gpu
PAIR="--rollout-batch-size 32"
python3 train.py --colocate $FLAG 8192 $PAIR
