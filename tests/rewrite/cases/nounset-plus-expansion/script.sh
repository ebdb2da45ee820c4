#!/bin/bash
set -u
ARGS=(--rollout-batch-size 32)
python3 train.py --colocate ${ARGS[@]+"${ARGS[@]}"} ${TOK+--max-tokens-per-gpu "$TOK"}
