#!/bin/bash
ENVS=( NCCL_DEBUG=WARN VLLM_USE_V1=1 )
mb=8
env "${ENVS[@]}" python3 -m verl.trainer.main_ppo \
  data.train_files="[/d/a.parquet, /d/b.parquet]" \
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu="$mb" \
  actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu="$((mb * 2))" \
  reward_model.prompt='say "hi"'
