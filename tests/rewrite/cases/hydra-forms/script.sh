#!/bin/bash
#SBATCH --nodes=1
python3 -m verl.trainer.main_ppo --config-path=config --config-name='ppo_megatron_trainer.yaml' \
    'actor_rollout_ref.model.path=/m/a b' \
    +actor_rollout_ref.actor.optim.override_optimizer_config.optimizer_cpu_offload=False \
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8" \
    actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
    trainer.experiment_name='x' \
    actor_rollout_ref.rollout.gpu_memory_utilization=0.5
