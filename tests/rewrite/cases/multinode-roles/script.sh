#!/bin/bash
#SBATCH --nodes=2
if [ "$SLURM_PROCID" -eq 0 ]; then
    ray start --head --port=6379
    python3 -m verl.trainer.main_ppo actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 trainer.nnodes=2
else
    ray start --address=node01:6379 --block
fi
