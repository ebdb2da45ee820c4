#!/bin/bash
#SBATCH --nodes=1
python3 -m verl.trainer.main_ppo \
    actor_rollout_ref.actor.ppo_micro_batch_size=64 \
    actor_rollout_ref.actor.strategy=fsdp
