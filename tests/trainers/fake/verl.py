# SPDX-License-Identifier: Apache-2.0
"""verl: main_ppo with hydra overrides over its own configuration tree."""
import copy

from . import text
from .memory import MIB, Engine, Load
from .parsers import Refused, flat, get, hydra, load_yaml, resolve
from .ray import RayTrainer

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
METHOD = {'forward': 'actor_rollout_update_actor', 'backward': 'actor_rollout_update_actor',
          'optimizer': 'actor_rollout_update_actor', 'log_probs': 'actor_rollout_compute_log_prob',
          'ref_log_probs': 'ref_compute_ref_log_prob', 'generation': 'actor_rollout_generate_sequences',
          'init': 'actor_rollout_init_model', 'engine_init': 'actor_rollout_init_model',
          'weight_sync': 'actor_rollout_wake_up', 'checkpoint': 'actor_rollout_save_checkpoint'}
FUNC = [('verl/single_controller/ray/base.py', 801, 'func', 'return getattr(self.worker_dict[key], name)(*args, **kwargs)'),
        ('verl/single_controller/base/decorator.py', 462, 'inner', 'return func(*args, **kwargs)')]
UPDATE = [('verl/workers/fsdp_workers.py', 921, 'update_actor', 'metrics = self.actor.update_policy(data=data)')]
WHERE = {
    'init': [('verl/workers/fsdp_workers.py', 790, 'init_model', ') = self._build_model_optimizer('),
             ('verl/workers/fsdp_workers.py', 402, '_build_model_optimizer', 'actor_module = actor_module_class.from_pretrained('),
             ('transformers/modeling_utils.py', 4574, 'from_pretrained', ') = cls._load_pretrained_model(')],
    'forward': UPDATE + [('verl/workers/actor/dp_actor.py', 588, 'update_policy', 'entropy, log_prob = self._forward_micro_batch('),
                         ('verl/workers/actor/dp_actor.py', 261, '_forward_micro_batch', 'output = self.actor_module(')] + text.MODULE_CALL,
    'backward': UPDATE + [('verl/workers/actor/dp_actor.py', 655, 'update_policy', 'loss.backward()')] + text.AUTOGRAD,
    'optimizer': UPDATE + [('verl/workers/actor/dp_actor.py', 671, 'update_policy', 'grad_norm = self._optimizer_step()'),
                           ('verl/workers/actor/dp_actor.py', 412, '_optimizer_step', 'self.actor_optimizer.step()'),
                           ('torch/optim/adamw.py', 220, 'step', 'has_complex = self._init_group(')],
    'log_probs': [('verl/workers/fsdp_workers.py', 1013, 'compute_log_prob', 'output, entropys = self.actor.compute_log_prob('),
                  ('verl/workers/actor/dp_actor.py', 468, 'compute_log_prob', 'entropy, log_probs = self._forward_micro_batch('),
                  ('verl/workers/actor/dp_actor.py', 296, '_forward_micro_batch', 'log_probs = logprobs_from_logits('),
                  ('verl/utils/torch_functional.py', 92, 'logprobs_from_logits', 'output = logprobs_from_logits_v2(logits, labels)')],
    'ref_log_probs': [('verl/workers/fsdp_workers.py', 1062, 'compute_ref_log_prob', 'output, _ = self.ref_policy.compute_log_prob('),
                      ('verl/workers/actor/dp_actor.py', 468, 'compute_log_prob', 'entropy, log_probs = self._forward_micro_batch('),
                      ('verl/utils/torch_functional.py', 92, 'logprobs_from_logits', 'output = logprobs_from_logits_v2(logits, labels)')],
    'weight_sync': [('verl/workers/fsdp_workers.py', 702, 'rollout_mode', 'await self.rollout.update_weights(per_tensor_param, peft_config=peft_config)'),
                    ('verl/workers/rollout/vllm_rollout/vllm_rollout.py', 301, 'update_weights', 'model.load_weights(weights)'),
                    ('torch/distributed/tensor/_api.py', 648, 'full_tensor', 'redist_res = self.redistribute(')],
    'checkpoint': [('verl/workers/fsdp_workers.py', 1081, 'save_checkpoint', 'self.checkpoint_manager.save_checkpoint('),
                   ('verl/utils/checkpoint/fsdp_checkpoint_manager.py', 231, 'save_checkpoint', 'model_state_dict = self.model.state_dict()')],
}
TIMER = {'log_probs': ('_compute_old_log_prob', 1503), 'ref_log_probs': ('_compute_ref_log_prob', 1539)}


class Verl(RayTrainer):
    name = 'verl'
    script = 'verl/trainer/main_ppo.py'
    root = '/workspace/verl/'
    actor = 'WorkerDict'
    module = 'verl.single_controller.ray.base'

    def parse(self):
        import yaml
        tree = yaml.safe_load(TREE)
        rest = []
        for a in self.argv:
            if a.startswith(('--config-path', '--config-name', '-cp', '-cn')):
                if 'megatron' in a:
                    tree['actor_rollout_ref']['actor']['strategy'] = 'megatron'
            else:
                rest.append(a)
        extra = self.scenario.get('tree')
        if extra:
            for key, value in flat(load_yaml(extra)).items():
                hydra(tree, ['++%s=%s' % (key, value)], 'main_ppo.py')
        hydra(tree, rest, 'main_ppo.py')
        self.tree = resolve(copy.deepcopy(tree))
        self.settings = flat(self.tree)
        self.overrides = rest
        try:
            self.validate()
        except Refused as r:
            r.lines = ['Error executing job with overrides: %s' % rest] + r.lines
            raise

    def get(self, key):
        return get(self.tree, key)

    def fail(self, where, error):
        raise Refused(text.traceback([(self.root + 'verl/trainer/main_ppo.py', 306, 'run', 'validate_config('),
                                      (self.root + 'verl/' + where, 105, 'validate_config', 'raise')], error))

    def validate(self):
        a, g = ARR + 'actor.', self.get
        dynamic = g(a + 'use_dynamic_bsz')
        pairs = [(a + 'ppo_micro_batch_size', 'actor_rollout_ref.actor', dynamic),
                 (ARR + 'rollout.log_prob_micro_batch_size', 'actor_rollout_ref.rollout', g(ARR + 'rollout.log_prob_use_dynamic_bsz'))]
        if g(a + 'use_kl_loss') or g('algorithm.use_kl_in_reward'):
            pairs.append((ARR + 'ref.log_prob_micro_batch_size', 'actor_rollout_ref.ref', g(ARR + 'ref.log_prob_use_dynamic_bsz')))
        for key, name, free in pairs:
            old, new = g(key), g(key + '_per_gpu')
            leaf = key.rpartition('.')[2]
            if not free and old is None and new is None:
                self.fail('utils/config.py', "ValueError: [%s] Please set at least one of '%s.%s' or '%s.%s_per_gpu'." % (
                    name, name, leaf, name, leaf))
            if old is not None and new is not None:
                self.fail('utils/config.py', "ValueError: [%s] You have set both '%s.%s' AND '%s.%s_per_gpu'. Please remove "
                          "'%s.%s' because only '*_per_gpu' is supported" % (name, name, leaf, name, leaf, name, leaf))
            for value in (old, new):
                if value is not None and (not isinstance(value, int) or value < 1):
                    self.fail('utils/config.py', 'ValueError: %s must be a positive integer, got %r' % (key, value))
        if g('data.train_batch_size') < g(a + 'ppo_mini_batch_size'):
            self.fail('workers/config/actor.py', 'ValueError: train_batch_size (%d) must be >= actor.ppo_mini_batch_size (%d)' % (
                g('data.train_batch_size'), g(a + 'ppo_mini_batch_size')))
        sp = g(a + 'ulysses_sequence_parallel_size')
        if sp > 1 and not g(ARR + 'model.use_remove_padding'):
            self.fail('workers/config/actor.py', 'ValueError: When using sequence parallelism for actor/ref policy, you must '
                      'enable `use_remove_padding`.')
        heads = self.scenario.get('model', {}).get('heads', 28)
        if heads % sp or self.world % sp:
            self.fail('workers/fsdp_workers.py', 'AssertionError: num_attention_heads (%d) must be divisible by '
                      'ulysses_sequence_parallel_size(%d)' % (heads, sp))
        megatron = g(a + 'strategy') == 'megatron'
        n = g(ARR + 'rollout.n')
        real = g('data.train_batch_size') * n
        minimal = self.world
        if megatron:
            mp = g(a + 'megatron.tensor_model_parallel_size') * g(a + 'megatron.pipeline_model_parallel_size')
            minimal = self.world // mp * (g(a + 'ppo_micro_batch_size_per_gpu') or 1)
        if not dynamic and real % minimal:
            self.fail('utils/config.py', 'AssertionError: real_train_batch_size (%d) must be divisible by minimal possible '
                      'batch size (%d)' % (real, minimal))
        if not dynamic:
            micro = g(a + 'ppo_micro_batch_size_per_gpu')
            per = g(a + 'ppo_mini_batch_size') * n * sp // self.world
            if micro and per % micro:
                self.fail('workers/fsdp_workers.py', 'AssertionError: normalized ppo_mini_batch_size %d should be divisible by '
                          'ppo_micro_batch_size_per_gpu %d' % (per, micro))
        util = g(ARR + 'rollout.gpu_memory_utilization')
        if not isinstance(util, (int, float)) or not 0 < util <= 1:
            self.fail('workers/config/rollout.py', 'ValueError: gpu_memory_utilization must be in (0, 1], got %r' % util)
        if g(ARR + 'rollout.tensor_model_parallel_size') > self.world or heads % g(ARR + 'rollout.tensor_model_parallel_size'):
            self.fail('workers/fsdp_workers.py', 'AssertionError: rollout world_size: %d is not divisible by infer_tp: %d' % (
                self.world, g(ARR + 'rollout.tensor_model_parallel_size')))

    def load(self):
        g = self.get
        a = ARR + 'actor.'
        seq = g('data.max_prompt_length') + g('data.max_response_length')
        megatron = g(a + 'strategy') == 'megatron'
        sp = g(a + 'ulysses_sequence_parallel_size')
        f = a + ('megatron.' if megatron else 'fsdp_config.')
        ckpt = g(ARR + 'model.enable_gradient_checkpointing')
        lora = g(ARR + 'model.lora_rank')
        offload = bool(g(f + 'offload_policy')) if not megatron else False
        lo = Load(shard='dist' if megatron else 'z3',
                  cp=1, weight_bytes=2 if megatron or g(f + 'model_dtype') in ('bf16', 'bfloat16') else 4,
                  grad_bytes=4, opt_bytes=12 if megatron else 8, trainable=0.02 if lora else 1.0,
                  opt_offload=0.0,
                  param_offload=offload,
                  recompute='full' if ckpt else 'none', act_offload=bool(g(ARR + 'model.enable_activation_offload')),
                  fused_loss=bool(g(ARR + 'model.use_fused_kernels') or g(ARR + 'model.use_liger') and False),
                  loss_recompute=bool(g(a + 'entropy_checkpointing') or g(a + 'entropy_from_logits_with_chunking')),
                  workers=g('data.dataloader_num_workers') / 8, init_host_full=0)
        if megatron:
            t = g(a + 'megatron.override_transformer_config') or {}
            lo.recompute = t.get('recompute_granularity') or 'none'
            lo.tp = g(a + 'megatron.tensor_model_parallel_size')
            lo.pp = g(a + 'megatron.pipeline_model_parallel_size')
            if t.get('recompute_granularity') == 'full' and not t.get('recompute_method'):
                self.fail('workers/megatron_workers.py', 'ValueError: Unsupported recompute_method: None')
        # offload between phases: the optimizer state leaves the card except for its step
        if g(f + 'optimizer_offload'):
            lo.opt_offload, lo.opt_returns = 1.0, True
        if g(f + 'param_offload'):
            lo.sync_host = lo.weight_bytes / 2.0 / max(1, self.world if not megatron else 1)
        lo.train_sleeps = bool(g(f + 'param_offload'))
        dynamic = g(a + 'use_dynamic_bsz')
        lo.tokens = (g(a + 'ppo_max_token_len_per_gpu') if dynamic
                     else (g(a + 'ppo_micro_batch_size_per_gpu') or 1) * seq // sp)

        def log_prob(section):
            s = ARR + section + '.'
            if g(s + 'log_prob_use_dynamic_bsz'):
                return g(s + 'log_prob_max_token_len_per_gpu')
            return (g(s + 'log_prob_micro_batch_size_per_gpu') or 1) * seq // sp
        lo.lp_tokens, lo.ref_tokens = log_prob('rollout'), log_prob('ref')
        self.longest = seq
        self.room = [(v * sp) for v in ((lo.tokens,) if dynamic else ())]
        r = ARR + 'rollout.'
        lo.sync_buffer = (get(self.tree, r + 'checkpoint_engine.update_weights_bucket_megabytes') or 512) * MIB
        lo.engine = Engine('sglang' if g(r + 'name') == 'sglang' else 'vllm', g(r + 'gpu_memory_utilization'),
                           tp=g(r + 'tensor_model_parallel_size'), sleeps=bool(g(r + 'free_cache_engine')),
                           prefill_tokens=g(r + 'max_num_batched_tokens'), running=g(r + 'max_num_seqs'),
                           graph_batch=0 if g(r + 'enforce_eager') else 128,
                           max_len=g(r + 'max_model_len') or seq)
        return lo

    def steps(self):
        out = [('init', 1), ('engine_init', 1)]
        for step in (1, 2, 3):
            out += [('data', step), ('weight_sync', step), ('generation', step), ('log_probs', step)]
            if self.get(ARR + 'actor.use_kl_loss') or self.get('algorithm.use_kl_in_reward'):
                out.append(('ref_log_probs', step))
            out += [('forward', step), ('backward', step), ('optimizer', step)]
        return out + [('checkpoint', 3)]

    def dump(self):
        self.out.say('(TaskRunner pid=64309) [validate_config] All configuration checks passed successfully!',
                     '(TaskRunner pid=64309) Training from scratch')

    def before(self, phase, step):
        if phase == 'weight_sync':
            self.out.say('(WorkerDict pid=14034) INFO:%s,113:Before load_fsdp_model_to_gpu, memory allocated (GB): 4.81'
                         % self.out.stamp())
        elif phase == 'forward' and self.room and min(self.room) < self.longest:
            raise _TooLong(min(self.room), self.longest)

    def after(self, phase, step):
        if phase == 'optimizer':
            self.out.say('(TaskRunner pid=64309) step:%d - actor/entropy:0.312 - actor/pg_loss:0.002 - timing_s/gen:42.1 - '
                         'timing_s/old_log_prob:7.9 - timing_s/update_actor:33.0 - perf/max_memory_allocated_gb:61.2' % step)

    def run(self):
        try:
            return super().run()
        except _TooLong as e:
            message = ('AssertionError: max_token_len must be greater than the sequence length. Got max_token_len=%d and '
                       'max_seq_len=%d' % e.args)
            self.record('refused', code=1, text=message)
            self.out.err(*self.task_error('forward', message, 'AssertionError'))
            return 1

    def actor_of(self, phase):
        return self.actor, METHOD.get(phase, 'actor_rollout_update_actor'), self.module

    def driver_frames(self, phase):
        func, line = TIMER.get(phase, ('fit', 1603))
        return [(self.root + self.script, 42, 'main', 'run_ppo(config)'),
                (self.root + 'verl/trainer/ppo/ray_trainer.py', line, func,
                 'output = self.actor_rollout_wg.%s(batch)' % METHOD.get(phase, 'update_actor').replace('actor_rollout_', ''))]

    def where(self, phase):
        items = FUNC + WHERE.get(phase, [])
        return [(self.root + p if p.startswith('verl/') else p, n, f, c) for p, n, f, c in items]

    def crash(self, death):
        self.out.err('Error executing job with overrides: %s' % self.overrides)
        code = super().crash(death)
        self.out.err('', 'Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.')
        return code

    def wake_death(self, death):
        if self.get(ARR + 'rollout.name') == 'sglang':
            p = self.prefix('SGLangHttpServer', 93125)
            self.out.err('[torch_memory_saver.cpp] cudaError error: 2 (out of memory)  file=csrc/core.cpp func=resume '
                         'line=172', prefix=p)
            self.worker_died('SGLangHttpServer')
        else:
            message = 'RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62'
            lines = text.traceback(self.driver_frames('weight_sync') + text.RAY_GET, text.ray_task_error(
                self.actor, 'actor_rollout_wake_up', self.module, 'RuntimeError')) + text.frames(
                    [(p, n, f, c) for p, n, f, c in self.where('init')[:2]] +
                    [('vllm/v1/worker/gpu_worker.py', 131, 'wake_up', 'allocator.wake_up(tags)'),
                     ('vllm/device_allocator/cumem.py', 225, 'wake_up', 'create_and_map(handle)')])
            self.out.err(*lines, message)
        return 1

    def engine_death(self, death):
        from .servers import sglang_death, vllm_death
        if self.get(ARR + 'rollout.name') == 'sglang':
            sglang_death(self.out, death, self.torch, prefix='(SGLangHttpServer pid=6990) ')
        else:
            vllm_death(self.out, death, self.torch, prefix='(vLLMHttpServer pid=6990) ')
        self.worker_died('vLLMHttpServer')
        return 1

    def finish(self):
        self.out.say("(TaskRunner pid=64309) 'Final validation metrics: {}'", 'Training Progress: 100%|##########| 3/3')


class _TooLong(Exception):
    pass
