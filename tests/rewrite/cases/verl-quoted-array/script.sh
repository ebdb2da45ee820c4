#!/bin/bash
set -euo pipefail
PPO_MICRO_BATCH_SIZE=${PPO_MICRO_BATCH_SIZE:-4}
MAX_PROMPT_LENGTH=${MAX_PROMPT_LENGTH:-512}
overrides=(
  "data.train_files=['/data/a b.parquet']"
  "data.max_prompt_length=${MAX_PROMPT_LENGTH}"
  "data.max_response_length=${MAX_RESPONSE_LENGTH:-2048}"
  "+actor_rollout_ref.model.override_config.attn_implementation=eager"
  "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=${PPO_MICRO_BATCH_SIZE}"
  "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=${PPO_MICRO_BATCH_SIZE}"
  'trainer.logger=["console","wandb"]'
  "trainer.experiment_name=mb${PPO_MICRO_BATCH_SIZE}"
)
if [[ "${ARM:-}" == "b" ]]; then
  overrides+=( "++actor_rollout_ref.rollout.custom.file=x" )
fi
PYTHONUNBUFFERED=1 python3 -m verl.trainer.main_ppo --config-name=ppo_trainer "${overrides[@]}" "$@" 2>&1 | tee "train.log"
