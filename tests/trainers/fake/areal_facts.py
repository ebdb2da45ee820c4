# SPDX-License-Identifier: Apache-2.0
"""AReaL's configuration classes as names, its defaults, and the stack frames of its phases."""

from . import text

ENGINE = '''backend path experiment_name trial_name init_from_scratch is_critic disable_dropout
gradient_checkpointing dtype grad_reduce_dtype optimizer_dtype attn_impl use_kernels pad_to_maximum
weight_update_mode logprobs_chunk_size enable_tree_training use_lora lora_rank lora_alpha peft_type
temperature max_new_tokens group_size eps_clip eps_clip_higher c_clip reward_scaling reward_bias
reward_clip overlong_reward_penalty kl_ctl kl_estimator ppo_n_minibatches recompute_logprob
use_decoupled_loss behave_imp_weight_cap importance_sampling_level discount gae_lambda mask_no_eos_with_zero
dynamic_sampling log_agent_stats prox_logp_method value_eps_clip
mb_spec.n_mbs mb_spec.granularity mb_spec.max_tokens_per_mb mb_spec.n_mbs_divisor mb_spec.packing_algorithm
optimizer.type optimizer.lr optimizer.weight_decay optimizer.beta1 optimizer.beta2 optimizer.eps
optimizer.min_lr_ratio optimizer.lr_scheduler_type optimizer.warmup_steps_proportion optimizer.offload
optimizer.initial_loss_scale optimizer.gradient_clipping
fsdp.wrap_policy fsdp.offload_params fsdp.memory_efficient_load fsdp.per_layer_optim_step
fsdp.optim_step_prefetch_layers fsdp.shard_vision_across_sp
archon.offload_params archon.ac_mode archon.selective_ac_option archon.ac_memory_budget
archon.enable_compile archon.reshard_after_forward_policy archon.pp_schedule archon.attn_type
megatron.recompute_granularity megatron.recompute_method megatron.recompute_num_layers
megatron.use_precision_aware_optimizer megatron.exp_avg_dtype megatron.exp_avg_sq_dtype
megatron.virtual_pipeline_parallel_size megatron.wrap_with_ddp megatron.use_deterministic_algorithms
megatron.ddp.grad_reduce_in_fp32 megatron.ddp.overlap_grad_reduce megatron.ddp.overlap_param_gather
megatron.ddp.use_distributed_optimizer megatron.overlap_param_gather_with_optimizer_step
scheduling_spec scheduling_strategy.type scheduling_strategy.target reward_norm.mean_level reward_norm.std_level
reward_norm.group_size adv_norm.mean_level adv_norm.std_level rejection_sampling.metric
rejection_sampling.upper rejection_sampling.lower'''.split()
SCHEMA = {
    '': '''experiment_name trial_name seed enable_offload total_train_epochs total_train_steps total_train_n_seqs
        tokenizer_path allocation_mode async_training weight_update_mode workflow eval_workflow''',
    'cluster': '''n_nodes n_gpus_per_node fileroot cluster_name name_resolve.type name_resolve.nfs_record_root
        name_resolve.etcd3_addr name_resolve.ray_actor_name''',
    'scheduler': 'type endpoint deploy_mode functioncall_service_domain reward_functioncall_config',
    'rollout': '''backend experiment_name trial_name max_concurrent_rollouts queue_size consumer_batch_size
        max_head_offpolicyness enable_rollout_tracing check_trajectory_format schedule_policy setup_timeout
        request_timeout request_retries pause_grace_period scheduling_spec scheduling_strategy.type fileroot
        tokenizer_path dump_to_file agent.mode agent.export_style agent.turn_discount openai use_lora return_routed_experts''',
    'gconfig': '''n_samples min_new_tokens max_new_tokens max_tokens greedy temperature top_p top_k stop
        stop_token_ids ignore_eos frequency_penalty lora_name use_beam_search''',
    'sglang': '''model_path random_seed skip_tokenizer_init dtype max_running_requests context_length
        mem_fraction_static chunked_prefill_size max_prefill_tokens cuda_graph_max_bs cuda_graph_bs
        disable_cuda_graph cpu_offload_gb kv_cache_dtype enable_memory_saver schedule_policy
        schedule_conservativeness attention_backend disable_radix_cache log_level enable_torch_compile
        triton_attention_num_kv_splits ep_size dp_size enable_dp_attention show_time_cost disable_overlap_schedule''',
    'vllm': '''model seed skip_tokenizer_init dtype max_model_len gpu_memory_utilization max_num_seqs
        enforce_eager cpu_offload_gb enable_sleep_mode swap_space max_num_batched_tokens
        enable_prefix_caching enable_chunked_prefill uvicorn_log_level worker_extension_cls''',
    'train_dataset': '''path type batch_size shuffle pin_memory num_workers drop_last max_length
        dataset_kwargs scheduling_spec''',
    'saver': 'experiment_name trial_name fileroot freq_epochs freq_steps freq_secs mode',
    'recover': 'mode experiment_name trial_name fileroot freq_epochs freq_steps freq_secs retries',
    'stats_logger': '''experiment_name trial_name fileroot wandb.mode wandb.project wandb.name wandb.key
        wandb.entity swanlab.mode swanlab.api_key tensorboard.path trackio.mode''',
    'perf_tracer': 'experiment_name trial_name fileroot enabled session_tracer.enabled save_interval',
    'launcher': '''inference_server_cpus_per_gpu inference_server_mem_per_gpu trainer_cpus_per_gpu
        trainer_mem_per_gpu inference_server_env_vars trainer_env_vars slurm.srun_additional_args
        slurm.trainer_image slurm.inference_server_image slurm.mount''',
}
SCHEMA['valid_dataset'] = SCHEMA['train_dataset']
SCHEMA['checkpointer'] = SCHEMA['evaluator'] = SCHEMA['saver']
PRUNED = ('scheduling_spec', 'dataset_kwargs', 'env_vars')
DEFAULTS = {
    'actor.gradient_checkpointing': False,
    'actor.mb_spec.max_tokens_per_mb': None,
    'actor.weight_update_mode': 'xccl',
    'actor.optimizer_dtype': 'float32',
    'actor.dtype': 'bfloat16',
    'actor.optimizer.type': 'adam',
    'actor.fsdp.offload_params': False,
    'actor.fsdp.memory_efficient_load': False,
    'actor.fsdp.per_layer_optim_step': False,
    'actor.megatron.recompute_granularity': 'full',
    'actor.archon.ac_mode': 'none',
    'actor.logprobs_chunk_size': 1024,
    'rollout.max_concurrent_rollouts': None,
    'sglang.mem_fraction_static': 0.9,
    'sglang.context_length': 32768,
    'sglang.chunked_prefill_size': -1,
    'sglang.max_running_requests': None,
    'vllm.gpu_memory_utilization': 0.9,
    'vllm.max_num_seqs': 256,
    'gconfig.max_new_tokens': 16384,
    'train_dataset.num_workers': 0,
}
WHERE = {
    'ppo_update': [
        (
            'areal/infra/rpc/guard/engine_blueprint.py',
            541,
            'execute_in_engine_thread',
            'result = method(*args, **kwargs)',
        ),
        ('areal/trainer/ppo/actor.py', 367, 'ppo_update', 'return self._ppo_update(data)'),
        ('areal/trainer/ppo/actor.py', 418, '_ppo_update', 'train_stat = self.engine.train_batch('),
        (
            'areal/engine/fsdp_engine.py',
            806,
            'train_batch',
            'self.forward_backward_batch(mb_list, process_output)',
        ),
    ],
    'forward': [
        (
            'areal/engine/fsdp_engine.py',
            752,
            'forward_backward_batch',
            'logits = self.model(**inputs)',
        )
    ]
    + text.MODULE_CALL
    + [('transformers/models/qwen2/modeling_qwen2.py', 449, 'forward', 'outputs = self.model(')],
    'backward': [('areal/engine/fsdp_engine.py', 771, 'forward_backward_batch', 'loss.backward()')]
    + text.AUTOGRAD,
    'optimizer': [
        ('areal/engine/fsdp_engine.py', 812, 'train_batch', 'return self.optimizer_step()'),
        ('areal/engine/fsdp_engine.py', 720, 'optimizer_step', 'self.optimizer.step()'),
        ('torch/optim/adamw.py', 220, 'step', 'has_complex = self._init_group('),
        ('torch/optim/adam.py', 196, '_init_group', 'state["exp_avg_sq"] = torch.zeros_like('),
    ],
    'log_probs': [
        (
            'areal/infra/rpc/guard/engine_blueprint.py',
            541,
            'execute_in_engine_thread',
            'result = method(*args, **kwargs)',
        ),
        (
            'areal/engine/fsdp_engine.py',
            2267,
            'compute_logp',
            'return self.actor.compute_logp(*args, **kwargs)',
        ),
        ('areal/trainer/ppo/actor.py', 121, 'compute_logp', 'return self.engine.forward('),
        (
            'areal/engine/fsdp_engine.py',
            870,
            'forward_batch',
            'self.forward_backward_batch(mb_list, process_output, forward_only=True)',
        ),
        (
            'areal/utils/functional/vocab_parallel.py',
            402,
            'gather_logprobs',
            'log_probs = torch.log_softmax(logits, dim=-1)',
        ),
    ],
    'weight_sync': [
        (
            'areal/infra/rpc/guard/engine_blueprint.py',
            541,
            'execute_in_engine_thread',
            'result = method(*args, **kwargs)',
        ),
        (
            'areal/engine/fsdp_engine.py',
            1710,
            'update_weights',
            'self._update_weights_from_distributed(meta)',
        ),
        (
            'areal/engine/fsdp_engine.py',
            1611,
            '_update_weights_from_distributed',
            'tensor = self._get_full_tensor(param)',
        ),
        ('areal/engine/fsdp_engine.py', 1340, '_get_full_tensor', 'return tensor.full_tensor()'),
    ],
    'init': [
        (
            'areal/infra/rpc/guard/engine_blueprint.py',
            541,
            'execute_in_engine_thread',
            'result = method(*args, **kwargs)',
        ),
        ('areal/engine/fsdp_engine.py', 398, 'initialize', 'self._create_device_model()'),
        (
            'areal/engine/fsdp_engine.py',
            1062,
            '_create_device_model',
            'model = self._create_llm_actor_or_critic()',
        ),
        (
            'transformers/modeling_utils.py',
            4574,
            'from_pretrained',
            ') = cls._load_pretrained_model(',
        ),
    ],
    'checkpoint': [
        (
            'areal/infra/rpc/guard/engine_blueprint.py',
            541,
            'execute_in_engine_thread',
            'result = method(*args, **kwargs)',
        ),
        (
            'areal/engine/fsdp_engine.py',
            640,
            'save',
            'self._save_model_to_hf(meta.path, meta.tokenizer, meta.processor)',
        ),
        (
            'torch/distributed/checkpoint/state_dict.py',
            961,
            'get_model_state_dict',
            'model_state_dict = _get_model_state_dict(model, info)',
        ),
    ],
}
METHOD = {
    'forward': 'ppo_update',
    'backward': 'ppo_update',
    'optimizer': 'ppo_update',
    'log_probs': 'compute_logp',
    'ref_log_probs': 'compute_logp',
    'weight_sync': 'update_weights',
    'init': 'initialize',
    'checkpoint': 'save',
}
USAGE = {'ref_log_probs': 'ref logp', 'log_probs': 'recompute logp', 'optimizer': 'ppo update'}
