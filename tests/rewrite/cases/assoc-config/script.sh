#!/bin/bash
declare -A TOKENS=(
    [a]=8192
    [b]=4096
)
MODEL=${MODEL:-a}
python3 train.py --colocate --hf-checkpoint /m/$MODEL --max-tokens-per-gpu "${TOKENS[$MODEL]}" --save /ckpt/$MODEL-${TOKENS[$MODEL]}
