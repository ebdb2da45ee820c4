#!/bin/bash
TOK=9216
ARGS=(
   --max-tokens-per-gpu $TOK
   --log-probs-max-tokens-per-gpu $TOK
)
python3 train.py --colocate "${ARGS[@]}"
