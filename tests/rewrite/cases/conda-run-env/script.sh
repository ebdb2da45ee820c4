#!/bin/bash
source ~/miniconda3/etc/profile.d/conda.sh
conda activate rl
env -u LD_PRELOAD PYTHONPATH=/opt/a:/opt/b conda run --no-capture-output -n rl --cwd . python -X faulthandler -W ignore -m relax.entrypoints.train \
    --resource '{"actor": [1, 8]}' --use-dynamic-batch-size --max-tokens-per-gpu 9216 --colocate
