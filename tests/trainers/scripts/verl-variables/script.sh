#!/bin/bash
set -xeuo pipefail
max_prompt_length=@prompt|2048@
max_response_length=@response|8192@
actor_ppo_max_token_len=$(((max_prompt_length + max_response_length) * @factor|4@))
infer_ppo_max_token_len=$(((max_prompt_length + max_response_length) * @lp_factor|4@))
OPTIM_OFFLOAD=${OPTIM_OFFLOAD:-@ooff|False@}
sp_size=@sp|1@
gpu_util=@util|0.6@

ray job submit --runtime-env-json='{"working_dir": "./"}' \
    -- python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    data.max_prompt_length=${max_prompt_length} \
    data.max_response_length=${max_response_length} \
    data.train_batch_size=256 \
    actor_rollout_ref.actor.ppo_mini_batch_size=64 \
    actor_rollout_ref.rollout.n=8 \
    actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.actor.use_dynamic_bsz=True \
    actor_rollout_ref.model.use_remove_padding=True \
    actor_rollout_ref.model.enable_gradient_checkpointing=@gc|True@ \
    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=${actor_ppo_max_token_len} \
    actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu=${infer_ppo_max_token_len} \
    actor_rollout_ref.ref.log_prob_max_token_len_per_gpu=${infer_ppo_max_token_len} \
    actor_rollout_ref.actor.ulysses_sequence_parallel_size=${sp_size} \
    actor_rollout_ref.actor.fsdp_config.param_offload=@poff|False@ \
    actor_rollout_ref.actor.fsdp_config.optimizer_offload=${OPTIM_OFFLOAD} \
    actor_rollout_ref.rollout.gpu_memory_utilization=${gpu_util} \
    actor_rollout_ref.rollout.tensor_model_parallel_size=@engine_tp|2@ \
    trainer.n_gpus_per_node=8 @extra|@ "$@"
