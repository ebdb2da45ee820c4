#!/bin/bash
#SBATCH --nodes=1
#SBATCH --mem=200G
set -x
python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    data.train_files=/data/train.parquet \
    data.train_batch_size=@batch|512@ \
    data.max_prompt_length=@prompt|1024@ \
    data.max_response_length=@response|2048@ \
    actor_rollout_ref.model.path=/models/base \
    actor_rollout_ref.model.use_remove_padding=True \
    actor_rollout_ref.model.enable_gradient_checkpointing=@gc|True@ \
    actor_rollout_ref.actor.ppo_mini_batch_size=@mini|256@ \
    actor_rollout_ref.actor.use_kl_loss=@kl|True@ \
    actor_rollout_ref.actor.fsdp_config.param_offload=@poff|False@ \
    actor_rollout_ref.actor.fsdp_config.optimizer_offload=@ooff|False@ \
    actor_rollout_ref.rollout.name=@engine|vllm@ \
    actor_rollout_ref.rollout.tensor_model_parallel_size=@engine_tp|2@ \
    actor_rollout_ref.rollout.gpu_memory_utilization=@util|0.6@ \
    actor_rollout_ref.rollout.n=@n|8@ \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=@micro|8@ \
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=@lp|16@ \
    actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=@ref|16@ \
    trainer.logger='["console","wandb"]' \
    trainer.n_gpus_per_node=8 \
    trainer.nnodes=1 @extra|@ 2>&1 | tee -a verl_demo.log
exit ${PIPESTATUS[0]}
