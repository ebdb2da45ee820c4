#!/bin/bash
set -a
source ./conf.env
set +a
python3 train.py --colocate --max-tokens-per-gpu $MAX_TOKENS --hf-checkpoint $MODEL
