#!/bin/bash
python3 -m verl.trainer.main_ppo \
  +actor_rollout_ref.model.override_config.max_position_embeddings=8192 \
  ++actor_rollout_ref.actor.fsdp_config.param_offload=False \
  ~trainer.foo \
  hydra.run.dir='out/${now:%Y-%m-%d}' \
  'trainer.logger=[console,wandb]' &> verl.log
