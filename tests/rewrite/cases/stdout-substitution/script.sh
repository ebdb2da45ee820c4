#!/bin/bash
set -o pipefail
if ! out=$(python3 train.py --colocate --max-tokens-per-gpu 8192 2>&1); then
    echo "failed: $out" >&2
    exit 1
fi
echo "${out##*$'\n'}"
