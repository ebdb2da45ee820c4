#!/bin/bash
set -eu
use_container=false
for arg in "$@"; do
    if [ "$arg" = "--container" ]; then use_container=true; fi
done
FLAGS="--colocate --use-dynamic-batch-size --max-tokens-per-gpu 8192"
if $use_container; then
    apptainer exec --nv -B /data:/data image.sif python3 train.py $FLAGS
else
    python3 train.py $FLAGS
fi
