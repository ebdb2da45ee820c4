# SPDX-License-Identifier: Apache-2.0
"""verl's configuration tree and the stack frames of its phases."""

from . import text

FSDP = '''{param_offload: false, optimizer_offload: false, offload_policy: false, reshard_after_forward: true,
    fsdp_size: -1, forward_prefetch: false, model_dtype: fp32, dtype: bfloat16, use_orig_params: false,
    wrap_policy: {min_num_params: 0}, ulysses_sequence_parallel_size: 1, use_torch_compile: true,
    entropy_from_logits_with_chunking: false, entropy_checkpointing: false, strategy: fsdp}'''
MEGATRON = '''{param_offload: false, grad_offload: false, optimizer_offload: false, tensor_model_parallel_size: 1,
    expert_model_parallel_size: 1, expert_tensor_parallel_size: null, pipeline_model_parallel_size: 1,
    virtual_pipeline_model_parallel_size: null, context_parallel_size: 1, sequence_parallel: true,
    use_distributed_optimizer: true, use_dist_checkpointing: false, dist_checkpointing_path: null, seed: 42,
    use_mbridge: true, override_transformer_config: {recompute_granularity: null, recompute_modules: null,
    recompute_method: null, recompute_num_layers: null, attention_backend: flash}}'''
TREE = '''
data: {tokenizer: null, train_files: x, val_files: x, prompt_key: prompt, max_prompt_length: 512,
  max_response_length: 512, train_batch_size: 1024, val_batch_size: null, return_raw_chat: true, shuffle: true,
  dataloader_num_workers: 8, filter_overlong_prompts: false, truncation: error, image_key: images,
  filter_overlong_prompts_workers: 1, seed: null, trust_remote_code: false, reward_fn_key: data_source}
actor_rollout_ref:
  hybrid_engine: true
  model: {path: x, use_shm: false, external_lib: null, override_config: {}, enable_gradient_checkpointing: true,
    enable_activation_offload: false, use_remove_padding: true, lora_rank: 0, lora_alpha: 16,
    target_modules: all-linear, use_liger: false, use_fused_kernels: false, trust_remote_code: false}
  actor:
    strategy: fsdp
    ppo_mini_batch_size: 256
    ppo_micro_batch_size: null
    ppo_micro_batch_size_per_gpu: null
    use_dynamic_bsz: false
    ppo_max_token_len_per_gpu: 16384
    clip_ratio: 0.2
    clip_ratio_low: 0.2
    clip_ratio_high: 0.2
    clip_ratio_c: 3.0
    loss_agg_mode: token-mean
    entropy_coeff: 0
    use_kl_loss: false
    kl_loss_coef: 0.001
    kl_loss_type: low_var_kl
    ppo_epochs: 1
    shuffle: false
    grad_clip: 1.0
    ulysses_sequence_parallel_size: 1
    entropy_from_logits_with_chunking: false
    entropy_checkpointing: false
    use_remove_padding: ${actor_rollout_ref.model.use_remove_padding}
    use_torch_compile: true
    checkpoint: {save_contents: [model, optimizer, extra], load_contents: [model], async_save: false}
    optim: {lr: 1.0e-06, lr_warmup_steps_ratio: 0.0, total_training_steps: -1, weight_decay: 0.01,
      lr_warmup_steps: -1, betas: [0.9, 0.999], clip_grad: 1.0, optimizer: AdamW, optimizer_impl: torch.optim,
      override_optimizer_config: null}
    fsdp_config: %(fsdp)s
    megatron: %(megatron)s
  ref:
    strategy: ${actor_rollout_ref.actor.strategy}
    log_prob_micro_batch_size: null
    log_prob_micro_batch_size_per_gpu: null
    log_prob_use_dynamic_bsz: "${oc.select:actor_rollout_ref.actor.use_dynamic_bsz,false}"
    log_prob_max_token_len_per_gpu: "${oc.select:actor_rollout_ref.actor.ppo_max_token_len_per_gpu,16384}"
    ulysses_sequence_parallel_size: "${oc.select:actor_rollout_ref.actor.ulysses_sequence_parallel_size,1}"
    entropy_from_logits_with_chunking: false
    entropy_checkpointing: false
    fsdp_config: %(fsdp)s
    megatron: %(megatron)s
  rollout:
    name: vllm
    mode: async
    temperature: 1.0
    top_k: -1
    top_p: 1
    prompt_length: "${oc.select:data.max_prompt_length,512}"
    response_length: "${oc.select:data.max_response_length,512}"
    dtype: bfloat16
    gpu_memory_utilization: 0.5
    ignore_eos: false
    enforce_eager: false
    cudagraph_capture_sizes: null
    free_cache_engine: true
    tensor_model_parallel_size: 2
    data_parallel_size: 1
    expert_parallel_size: 1
    pipeline_model_parallel_size: 1
    max_num_batched_tokens: 8192
    max_model_len: null
    max_num_seqs: 256
    enable_chunked_prefill: true
    enable_prefix_caching: true
    load_format: dummy
    layered_summon: false
    log_prob_micro_batch_size: null
    log_prob_micro_batch_size_per_gpu: null
    log_prob_use_dynamic_bsz: "${oc.select:actor_rollout_ref.actor.use_dynamic_bsz,false}"
    log_prob_max_token_len_per_gpu: "${oc.select:actor_rollout_ref.actor.ppo_max_token_len_per_gpu,16384}"
    disable_log_stats: true
    do_sample: true
    n: 1
    multi_stage_wake_up: false
    calculate_log_probs: false
    engine_kwargs: {vllm: {}, sglang: {}}
    val_kwargs: {top_k: -1, top_p: 1.0, temperature: 0, n: 1, do_sample: false}
    multi_turn: {enable: false, max_assistant_turns: null, tool_config_path: null, format: hermes}
    agent: {num_workers: 8}
    checkpoint_engine: {backend: naive, update_weights_bucket_megabytes: 2048}
    update_weights_bucket_megabytes: 512
critic:
  enable: null
  strategy: fsdp
  ppo_mini_batch_size: 256
  ppo_micro_batch_size: null
  ppo_micro_batch_size_per_gpu: null
  forward_micro_batch_size_per_gpu: null
  use_dynamic_bsz: false
  ppo_max_token_len_per_gpu: 32768
  forward_max_token_len_per_gpu: 32768
  model: {path: x, enable_gradient_checkpointing: true, enable_activation_offload: false, use_remove_padding: false,
    fsdp_config: %(fsdp)s}
  optim: {lr: 1.0e-05}
reward_model: {enable: false, enable_resource_pool: false, n_gpus_per_node: 8}
custom_reward_function: {path: null, name: compute_score}
algorithm: {gamma: 1.0, lam: 1.0, adv_estimator: gae, norm_adv_by_std_in_grpo: true, use_kl_in_reward: false,
  kl_penalty: kl, kl_ctrl: {type: fixed, kl_coef: 0.001}}
trainer: {balance_batch: true, total_epochs: 30, total_training_steps: null, project_name: verl_examples,
  experiment_name: gsm8k, logger: [console], log_val_generations: 0, nnodes: 1, n_gpus_per_node: 8, save_freq: -1,
  esi_redundant_time: 0, resume_mode: auto, val_before_train: true, val_only: false, test_freq: -1,
  critic_warmup: 0, default_local_dir: checkpoints, device: cuda, max_actor_ckpt_to_keep: null}
global_profiler: {tool: null, steps: null, save_path: outputs/profile}
ray_kwargs: {ray_init: {num_cpus: null}, timeline_json_file: null}
''' % {'fsdp': FSDP, 'megatron': MEGATRON}
ARR = 'actor_rollout_ref.'
METHOD = {
    'forward': 'actor_rollout_update_actor',
    'backward': 'actor_rollout_update_actor',
    'optimizer': 'actor_rollout_update_actor',
    'log_probs': 'actor_rollout_compute_log_prob',
    'ref_log_probs': 'ref_compute_ref_log_prob',
    'generation': 'actor_rollout_generate_sequences',
    'init': 'actor_rollout_init_model',
    'engine_init': 'actor_rollout_init_model',
    'weight_sync': 'actor_rollout_wake_up',
    'checkpoint': 'actor_rollout_save_checkpoint',
}
FUNC = [
    (
        'verl/single_controller/ray/base.py',
        801,
        'func',
        'return getattr(self.worker_dict[key], name)(*args, **kwargs)',
    ),
    ('verl/single_controller/base/decorator.py', 462, 'inner', 'return func(*args, **kwargs)'),
]
UPDATE = [
    (
        'verl/workers/fsdp_workers.py',
        921,
        'update_actor',
        'metrics = self.actor.update_policy(data=data)',
    )
]
WHERE = {
    'init': [
        ('verl/workers/fsdp_workers.py', 790, 'init_model', ') = self._build_model_optimizer('),
        (
            'verl/workers/fsdp_workers.py',
            402,
            '_build_model_optimizer',
            'actor_module = actor_module_class.from_pretrained(',
        ),
        (
            'transformers/modeling_utils.py',
            4574,
            'from_pretrained',
            ') = cls._load_pretrained_model(',
        ),
    ],
    'forward': UPDATE
    + [
        (
            'verl/workers/actor/dp_actor.py',
            588,
            'update_policy',
            'entropy, log_prob = self._forward_micro_batch(',
        ),
        (
            'verl/workers/actor/dp_actor.py',
            261,
            '_forward_micro_batch',
            'output = self.actor_module(',
        ),
    ]
    + text.MODULE_CALL,
    'backward': UPDATE
    + [('verl/workers/actor/dp_actor.py', 655, 'update_policy', 'loss.backward()')]
    + text.AUTOGRAD,
    'optimizer': UPDATE
    + [
        (
            'verl/workers/actor/dp_actor.py',
            671,
            'update_policy',
            'grad_norm = self._optimizer_step()',
        ),
        ('verl/workers/actor/dp_actor.py', 412, '_optimizer_step', 'self.actor_optimizer.step()'),
        ('torch/optim/adamw.py', 220, 'step', 'has_complex = self._init_group('),
    ],
    'log_probs': [
        (
            'verl/workers/fsdp_workers.py',
            1013,
            'compute_log_prob',
            'output, entropys = self.actor.compute_log_prob(',
        ),
        (
            'verl/workers/actor/dp_actor.py',
            468,
            'compute_log_prob',
            'entropy, log_probs = self._forward_micro_batch(',
        ),
        (
            'verl/workers/actor/dp_actor.py',
            296,
            '_forward_micro_batch',
            'log_probs = logprobs_from_logits(',
        ),
        (
            'verl/utils/torch_functional.py',
            92,
            'logprobs_from_logits',
            'output = logprobs_from_logits_v2(logits, labels)',
        ),
    ],
    'ref_log_probs': [
        (
            'verl/workers/fsdp_workers.py',
            1062,
            'compute_ref_log_prob',
            'output, _ = self.ref_policy.compute_log_prob(',
        ),
        (
            'verl/workers/actor/dp_actor.py',
            468,
            'compute_log_prob',
            'entropy, log_probs = self._forward_micro_batch(',
        ),
        (
            'verl/utils/torch_functional.py',
            92,
            'logprobs_from_logits',
            'output = logprobs_from_logits_v2(logits, labels)',
        ),
    ],
    'weight_sync': [
        (
            'verl/workers/fsdp_workers.py',
            702,
            'rollout_mode',
            'await self.rollout.update_weights(per_tensor_param, peft_config=peft_config)',
        ),
        (
            'verl/workers/rollout/vllm_rollout/vllm_rollout.py',
            301,
            'update_weights',
            'model.load_weights(weights)',
        ),
        ('torch/distributed/tensor/_api.py', 648, 'full_tensor', 'redist_res = self.redistribute('),
    ],
    'checkpoint': [
        (
            'verl/workers/fsdp_workers.py',
            1081,
            'save_checkpoint',
            'self.checkpoint_manager.save_checkpoint(',
        ),
        (
            'verl/utils/checkpoint/fsdp_checkpoint_manager.py',
            231,
            'save_checkpoint',
            'model_state_dict = self.model.state_dict()',
        ),
    ],
}
TIMER = {
    'log_probs': ('_compute_old_log_prob', 1503),
    'ref_log_probs': ('_compute_ref_log_prob', 1539),
}
