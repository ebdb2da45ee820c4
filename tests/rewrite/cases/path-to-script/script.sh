#!/bin/bash
#SBATCH --nodes=1
PYTHON=${PYTHON:-/opt/venv/bin/python}
$PYTHON -u -m openrlhf.cli.train_ppo_ray --train.micro_batch_size 4 --rollout.micro_batch_size=8
