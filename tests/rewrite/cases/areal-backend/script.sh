#!/bin/bash
#SBATCH --nodes=1
python3 examples/math/gsm8k_rl.py --config conf/g.yaml \
    scheduler.type=local actor.backend=fsdp:d8 \
    rollout.max_concurrent_rollouts=256
