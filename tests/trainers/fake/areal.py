# SPDX-License-Identifier: Apache-2.0
"""AReaL: a controller script with --config x.yaml and hydra overrides, then a structured merge
that refuses keys that its dataclasses do not have."""
import copy
import re

from . import text
from .memory import GIB, MIB, Engine, Load
from .parsers import Refused, flags, flat, get, hydra, load_yaml, resolve
from .play import Trainer

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
    'actor.gradient_checkpointing': False, 'actor.mb_spec.max_tokens_per_mb': None,
    'actor.weight_update_mode': 'xccl', 'actor.optimizer_dtype': 'float32', 'actor.dtype': 'bfloat16',
    'actor.optimizer.type': 'adam', 'actor.fsdp.offload_params': False,
    'actor.fsdp.memory_efficient_load': False, 'actor.fsdp.per_layer_optim_step': False,
    'actor.megatron.recompute_granularity': 'full', 'actor.archon.ac_mode': 'none',
    'actor.logprobs_chunk_size': 1024, 'rollout.max_concurrent_rollouts': None,
    'sglang.mem_fraction_static': 0.9, 'sglang.context_length': 32768, 'sglang.chunked_prefill_size': -1,
    'sglang.max_running_requests': None, 'vllm.gpu_memory_utilization': 0.9, 'vllm.max_num_seqs': 256,
    'gconfig.max_new_tokens': 16384, 'train_dataset.num_workers': 0,
}
WHERE = {
    'ppo_update': [('areal/infra/rpc/guard/engine_blueprint.py', 541, 'execute_in_engine_thread',
                    'result = method(*args, **kwargs)'),
                   ('areal/trainer/ppo/actor.py', 367, 'ppo_update', 'return self._ppo_update(data)'),
                   ('areal/trainer/ppo/actor.py', 418, '_ppo_update', 'train_stat = self.engine.train_batch('),
                   ('areal/engine/fsdp_engine.py', 806, 'train_batch', 'self.forward_backward_batch(mb_list, process_output)')],
    'forward': [('areal/engine/fsdp_engine.py', 752, 'forward_backward_batch', 'logits = self.model(**inputs)')]
    + text.MODULE_CALL + [('transformers/models/qwen2/modeling_qwen2.py', 449, 'forward', 'outputs = self.model(')],
    'backward': [('areal/engine/fsdp_engine.py', 771, 'forward_backward_batch', 'loss.backward()')] + text.AUTOGRAD,
    'optimizer': [('areal/engine/fsdp_engine.py', 812, 'train_batch', 'return self.optimizer_step()'),
                  ('areal/engine/fsdp_engine.py', 720, 'optimizer_step', 'self.optimizer.step()'),
                  ('torch/optim/adamw.py', 220, 'step', 'has_complex = self._init_group('),
                  ('torch/optim/adam.py', 196, '_init_group', 'state["exp_avg_sq"] = torch.zeros_like(')],
    'log_probs': [('areal/infra/rpc/guard/engine_blueprint.py', 541, 'execute_in_engine_thread', 'result = method(*args, **kwargs)'),
                  ('areal/engine/fsdp_engine.py', 2267, 'compute_logp', 'return self.actor.compute_logp(*args, **kwargs)'),
                  ('areal/trainer/ppo/actor.py', 121, 'compute_logp', 'return self.engine.forward('),
                  ('areal/engine/fsdp_engine.py', 870, 'forward_batch', 'self.forward_backward_batch(mb_list, process_output, forward_only=True)'),
                  ('areal/utils/functional/vocab_parallel.py', 402, 'gather_logprobs', 'log_probs = torch.log_softmax(logits, dim=-1)')],
    'weight_sync': [('areal/infra/rpc/guard/engine_blueprint.py', 541, 'execute_in_engine_thread', 'result = method(*args, **kwargs)'),
                    ('areal/engine/fsdp_engine.py', 1710, 'update_weights', 'self._update_weights_from_distributed(meta)'),
                    ('areal/engine/fsdp_engine.py', 1611, '_update_weights_from_distributed', 'tensor = self._get_full_tensor(param)'),
                    ('areal/engine/fsdp_engine.py', 1340, '_get_full_tensor', 'return tensor.full_tensor()')],
    'init': [('areal/infra/rpc/guard/engine_blueprint.py', 541, 'execute_in_engine_thread', 'result = method(*args, **kwargs)'),
             ('areal/engine/fsdp_engine.py', 398, 'initialize', 'self._create_device_model()'),
             ('areal/engine/fsdp_engine.py', 1062, '_create_device_model', 'model = self._create_llm_actor_or_critic()'),
             ('transformers/modeling_utils.py', 4574, 'from_pretrained', ') = cls._load_pretrained_model(')],
    'checkpoint': [('areal/infra/rpc/guard/engine_blueprint.py', 541, 'execute_in_engine_thread', 'result = method(*args, **kwargs)'),
                   ('areal/engine/fsdp_engine.py', 640, 'save', 'self._save_model_to_hf(meta.path, meta.tokenizer, meta.processor)'),
                   ('torch/distributed/checkpoint/state_dict.py', 961, 'get_model_state_dict', 'model_state_dict = _get_model_state_dict(model, info)')],
}
METHOD = {'forward': 'ppo_update', 'backward': 'ppo_update', 'optimizer': 'ppo_update', 'log_probs': 'compute_logp',
          'ref_log_probs': 'compute_logp', 'weight_sync': 'update_weights', 'init': 'initialize', 'checkpoint': 'save'}
USAGE = {'ref_log_probs': 'ref logp', 'log_probs': 'recompute logp', 'optimizer': 'ppo update'}


def known(path):
    head, _, rest = path.partition('.')
    if any('.' + p in '.' + path for p in PRUNED):
        return True
    if head in ('actor', 'ref', 'critic', 'teacher'):
        return not rest or rest in ENGINE or any(e.startswith(rest + '.') for e in ENGINE)
    names = SCHEMA.get(head if rest or head in SCHEMA else '', '').split()
    key = rest or path
    return key in names or any(n.startswith(key + '.') for n in names) or (not rest and head in SCHEMA)


def backend(value, what):
    """kind and dimensions of a backend string; the checks of the allocation grammar."""
    spec = re.sub(r'\s', '', str(value))
    if '+' in spec:
        raise Refused("ValueError: Expected a single-engine backend for %s, got '%s'" % (what, value))
    m = re.fullmatch(r'(sglang|vllm|fsdp|megatron|archon)(\[\w+\])?:((?:[dtpce][1-9]\d*)+)', spec)
    if not m:
        m2 = re.fullmatch(r'megatron:\(?attn:((?:[cdtp][1-9]\d*)+)\|ffn:((?:[detp][1-9]\d*)+)\)?', spec)
        if m2:
            d = dict((k, int(n)) for k, n in re.findall(r'([a-z])(\d+)', m2.group(1)))
            d['e'] = dict((k, int(n)) for k, n in re.findall(r'([a-z])(\d+)', m2.group(2))).get('e', 1)
            return 'megatron', {k: d.get(k, 1) for k in 'dtpce'}
        raise Refused("lark.exceptions.UnexpectedCharacters: No terminal matches '%s' in the current parser "
                      'context, at line 1 col 1' % (spec[:1] or '?'))
    kind = m.group(1)
    dims = {k: 1 for k in 'dtpce'}
    dims.update((k, int(n)) for k, n in re.findall(r'([a-z])(\d+)', m.group(3)))
    if kind in ('sglang', 'vllm') and (dims['c'] > 1 or dims['e'] > 1):
        raise Refused("lark.exceptions.UnexpectedCharacters: No terminal matches 'c' in the current parser context")
    if kind == 'fsdp' and (dims['p'] > 1 or dims['e'] > 1):
        raise Refused('areal.api.alloc_mode.AllocationValidationError: FSDP backend only supports '
                      'data/tensor/context parallelism.')
    world = dims['d'] * dims['t'] * dims['p'] * dims['c']
    if dims['e'] > 1 and world % (dims['p'] * dims['e']):
        raise Refused('AssertionError: Expert model parallel size %d cannot divide world size %d' % (dims['e'], world))
    return kind, dims


class Areal(Trainer):
    name = 'areal'
    script = 'examples/math/gsm8k_rl.py'
    root = '/workspace/AReaL/'

    def parse(self):
        args, rest = flags(self.program, 'config:s', abbrev=True).parse_known_args(self.argv)
        if not args.config:
            raise Refused(['usage: %s [-h] --config CONFIG' % self.program,
                           '%s: error: the following arguments are required: --config' % self.program], 2)
        tree = hydra(copy.deepcopy(load_yaml(args.config)), rest, self.program)
        for path in flat(tree):
            if not known(path):
                leaf = path.rpartition('.')[2]
                raise Refused(text.traceback(
                    [(self.root + 'areal/api/cli_args.py', 3552, 'load_expr_config',
                      'cfg = OmegaConf.merge(default_cfg, cfg)')],
                    "omegaconf.errors.ConfigKeyError: Key '%s' not in 'GRPOConfig'\n    full_key: %s\n    "
                    'object_type=GRPOConfig' % (leaf, path)))
        self.tree = resolve(tree)
        self.settings = flat(self.tree)
        self.check_values()

    def get(self, path):
        value = get(self.tree, path)
        return DEFAULTS.get(path) if value is None else value

    def check_values(self):
        for path in ('actor.backend', 'rollout.backend'):
            if not self.get(path):
                raise Refused("omegaconf.errors.MissingMandatoryValue: Missing mandatory value: %s" % path)
        for path, kind in (('actor.mb_spec.max_tokens_per_mb', int), ('rollout.max_concurrent_rollouts', int),
                           ('sglang.mem_fraction_static', float), ('actor.gradient_checkpointing', bool)):
            value = self.get(path)
            if value is not None and not isinstance(value, (kind, int)):
                raise Refused("omegaconf.errors.ValidationError: Value '%s' of type '%s' could not be converted to %s\n"
                              '    full_key: %s' % (value, type(value).__name__, kind.__name__.capitalize(), path))
        self.train = backend(self.get('actor.backend'), 'actor')
        self.serve = backend(self.get('rollout.backend'), 'rollout')
        ref = self.get('ref.backend')
        if ref:
            backend(ref, 'ref')
        kind, d = self.train
        if self.get('actor.optimizer.type') not in ('adam', 'sgd', 'adam_bf16'):
            raise Refused("ValueError: Unsupported optimizer type: %s" % self.get('actor.optimizer.type'))
        if self.get('actor.fsdp.per_layer_optim_step') and self.get('actor.optimizer.type') != 'adam':
            raise Refused(text.traceback([(self.root + 'areal/engine/fsdp_engine.py', 474, 'initialize', 'raise ValueError(')],
                                         "ValueError: per_layer_optim_step requires optimizer.type == 'adam', got '%s'"
                                         % self.get('actor.optimizer.type')))
        if self.get('actor.fsdp.memory_efficient_load') and self.get('actor.init_from_scratch'):
            raise Refused('ValueError: memory_efficient_load cannot be used with init_from_scratch=True')
        if self.get('actor.weight_update_mode') not in ('disk', 'xccl', 'awex'):
            raise Refused("ValueError: weight_update_mode must be one of disk, xccl, awex, got '%s'"
                          % self.get('actor.weight_update_mode'))
        m = self.scenario.get('model', {})
        heads, kv = m.get('heads', 28), m.get('kv_heads', 4)
        if kind == 'fsdp' and (heads % d['t'] or kv % d['t']):
            raise Refused('ValueError: tensor parallel size %d must divide num_attention_heads %d and '
                          'num_key_value_heads %d' % (d['t'], heads, kv))
        if heads % d['c']:
            raise Refused('ValueError: Ulysses sequence parallel size %d must divide num_attention_heads %d' % (d['c'], heads))
        if heads % self.serve[1]['t']:
            raise Refused('AssertionError: %d is not divisible by %d' % (heads, self.serve[1]['t']))
        size = [x['d'] * x['t'] * x['p'] * x['c'] for x in (d, self.serve[1])]
        gpus = (self.get('cluster.n_nodes') or 1) * (self.get('cluster.n_gpus_per_node') or 8)
        if sum(size) > gpus and self.hidden.get('separate', True):
            raise Refused('ValueError: Not enough GPUs: %d needed by actor and rollout, %d in the cluster' % (sum(size), gpus))
        self.world = size[0]
        if self.get('actor.fsdp.optim_step_prefetch_layers') is not None and self.get('actor.fsdp.optim_step_prefetch_layers') < 0:
            raise Refused('ValueError: optim_step_prefetch_layers must be >= 0')

    def load(self):
        kind, d = self.train
        g = self.get
        tokens = g('actor.mb_spec.max_tokens_per_mb')
        seq = self.scenario.get('model', {}).get('seq', 2048)
        low = g('actor.optimizer.type') == 'adam_bf16'
        lean = low or g('actor.optimizer_dtype') == 'bfloat16'
        storage = 2 if lean or kind != 'fsdp' else 4
        efficient = bool(g('actor.fsdp.memory_efficient_load')) and kind == 'fsdp'
        lo = Load(tp=d['t'], pp=d['p'], cp=d['c'], ep=d['e'],
                  shard='dist' if kind == 'megatron' else 'z3', weight_bytes=storage,
                  grad_bytes=4 if kind == 'megatron' else storage,
                  opt_bytes={'sgd': 0, 'adam_bf16': 6}.get(g('actor.optimizer.type'), 4 if lean else 8 if kind == 'fsdp' else 12),
                  param_offload=bool(g('actor.fsdp.offload_params') or g('actor.archon.offload_params')),
                  layer_step=bool(g('actor.fsdp.per_layer_optim_step')),
                  workers=g('train_dataset.num_workers'), pinned=bool(g('train_dataset.pin_memory')),
                  init_full=0 if efficient or kind != 'fsdp' else self.hidden.get('init_bytes', 2),
                  init_host_full=storage if efficient else 0,
                  sync_buffer=1024 * MIB, sync_disk=g('actor.weight_update_mode') == 'disk',
                  recompute='none')
        if g('actor.gradient_checkpointing'):
            lo.recompute = 'full'
            if kind == 'megatron' and g('actor.megatron.recompute_granularity') == 'selective':
                lo.recompute = 'selective'
        if kind == 'archon' and g('actor.archon.ac_mode') in ('full', 'selective'):
            lo.recompute = g('actor.archon.ac_mode')
        self.capacity_tokens = tokens
        lo.tokens = int(tokens or seq * 64) // d['c']
        ref = g('ref.mb_spec.max_tokens_per_mb')
        lo.ref_tokens = int(ref or tokens or seq * 64) // d['c']
        lo.lp_chunked = (g('actor.logprobs_chunk_size') or 0) > 0 and self.hidden.get('head', False)
        sk, sd = self.serve
        concurrent = g('rollout.max_concurrent_rollouts') or g('train_dataset.batch_size') or 256
        each = -(-concurrent // sd['d']) * self.hidden.get('samples_at_once', 1)
        if sk == 'sglang':
            chunk = g('sglang.chunked_prefill_size')
            lo.engine = Engine('sglang', g('sglang.mem_fraction_static'), tp=sd['t'],
                               prefill_tokens=chunk if chunk and chunk > 0 else 8192,
                               running=min(each, g('sglang.max_running_requests') or 4096),
                               graph_batch=0 if g('sglang.disable_cuda_graph') else g('sglang.cuda_graph_max_bs') or 80,
                               max_len=min(g('sglang.context_length'), self.hidden.get('context', 4096)),
                               offload_bytes=(g('sglang.cpu_offload_gb') or 0) * GIB)
        else:
            lo.engine = Engine('vllm', g('vllm.gpu_memory_utilization'), tp=sd['t'], prefill_tokens=8192,
                               running=min(each, g('vllm.max_num_seqs')), max_len=g('vllm.max_model_len') or 32768,
                               graph_batch=0 if g('vllm.enforce_eager') else 128)
        lo.engine.colocated = self.hidden.get('colocated', False)
        lo.train_sleeps = lo.engine.colocated
        return lo

    def steps(self):
        out = [('init', 1), ('engine_init', 1)]
        for step in (1, 2, 3):
            out += [('generation', step), ('data', step)]
            if get(self.tree, 'ref'):
                out.append(('ref_log_probs', step))
            out += [('log_probs', step), ('forward', step), ('backward', step), ('optimizer', step),
                    ('weight_sync', step + 1)]
        return out + [('checkpoint', 3)]

    def log(self, who, line, level='INFO'):
        self.out.say('(AReaL) %s.153 %s %s: %s' % (self.out.stamp('%Y%m%d-%H:%M:%S'), who, level, line))

    def usage(self, who, head):
        self.log(who, 'Memory-Usage %s: memory allocated (GB): 32.86, memory reserved (GB): 49.24, device memory '
                 'used/total (GB): 56.49/%.2f | host RssAnon: 15282MB, RssShmem: 627MB' % (
                     head, self.scenario.get('gpu_gib', 79.15)))

    def before(self, phase, step):
        if phase == 'init':
            self.usage('[FSDP Engine Rank 0]', 'before model creation/loading')
        elif phase == 'engine_init':
            self.log('LocalScheduler', "Creating %d workers for role 'rollout'" % self.serve[1]['d'])
        elif phase == 'generation':
            self.log('WorkflowExecutor', 'Finish and accept rollout. Submit: 603, running: 54, accepted: %d.' % (600 * step))
        elif phase == 'forward':
            self.usage('PPOActor', 'compute advantages')
            seq = self.scenario.get('model', {}).get('seq', 2048)
            if self.capacity_tokens and seq > self.capacity_tokens:
                raise _TooLong(seq, self.capacity_tokens)

    def after(self, phase, step):
        if phase == 'generation':
            self.log('RolloutController', 'Rollout results are ready!')
        elif phase in USAGE:
            self.usage('PPORef' if phase == 'ref_log_probs' else 'PPOActor', USAGE[phase])
        elif phase == 'weight_sync':
            self.log('[FSDP Engine Rank 0]', 'Update weights (xccl) version %d took 1.57s' % step)
            self.log('StatsLogger', 'Epoch 1/10 Step %d/29 Train step %d/290 done.' % (step, step))

    def run(self):
        try:
            return super().run()
        except _TooLong as e:
            message = 'RuntimeError: Values [%d] is larger than capacity %d' % e.args
            self.record('refused', code=1, text=message)
            self.engine_error('ppo_update', text.traceback(self.frames('ppo_update') + [
                (self.root + 'areal/utils/seqpack.py', 240, 'ffd_allocate', 'raise RuntimeError(')], message), message)
            return 1

    def frames(self, key):
        return [(self.root + p if p.startswith('areal/') else p, n, f, c) for p, n, f, c in WHERE[key]]

    def where(self, phase):
        if phase in ('forward', 'backward'):
            return self.frames('ppo_update') + self.frames(phase)
        if phase == 'optimizer':
            return self.frames('ppo_update')[:3] + self.frames('optimizer')
        return self.frames({'ref_log_probs': 'log_probs'}.get(phase, phase if phase in WHERE else 'ppo_update'))

    def engine_error(self, method, body, message, role='actor'):
        self.log('EngineBlueprint', "Engine method '%s' failed: %s" % (method, message), 'ERROR')
        self.out.err(*body)
        self.controller(method, message, role, body)

    def controller(self, method, message, role, body):
        short = message.split('. Tried')[0] + '.'
        self.out.err(*text.traceback(
            [(self.root + self.script, 51, '<module>', 'main(sys.argv[1:])'),
             (self.root + 'areal/trainer/rl_trainer.py', 826, 'train', 'self.actor.%s(adv_batch)' % method),
             (self.root + 'areal/infra/scheduler/local.py', 1668, 'async_call_engine', 'raise EngineCallError(')],
            "areal.infra.scheduler.exceptions.EngineCallError: Failed to call method '%s' on worker '%s/%d': Engine "
            "method '%s' failed: %s" % (method, role, self.rank % max(1, self.world), method, short)))
        self.log('LocalScheduler', "Deleting %d workers for role '%s'" % (self.world, role))
        self.out.err("areal.infra.scheduler.exceptions.WorkerFailedError: Worker '%s/%d' failed with exit code -1" % (
            role, self.rank % max(1, self.world)), 'Logs:')
        self.out.err(*body, prefix='[%s] ' % role)

    def crash(self, death):
        if death.domain == 'host':
            if death.phase == 'init':
                self.log('[FSDP Engine Rank 0]', 'Loading weights on rank 0, host RssAnon: 251282MB')
            text.slurm_oom(self.out)
            self.out.err("areal.infra.scheduler.exceptions.WorkerFailedError: Worker 'actor/0' failed with exit code -9")
            return 1
        if death.domain == 'shm':
            self.out.err('ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient '
                         'shared memory (shm).')
            return 1
        if death.kind in ('static', 'work', 'capture', 'load', 'startup', 'sampler', 'wake') or death.domain == 'kv_cache':
            if self.serve[0] == 'sglang':
                from .servers import sglang_death
                sglang_death(self.out, death, self.torch)
            else:
                from .servers import vllm_death
                vllm_death(self.out, death, self.torch)
            self.out.err("areal.infra.scheduler.exceptions.WorkerFailedError: Worker 'rollout/0' failed with exit code -9")
            return 1
        if death.domain == 'none':
            if death.kind == 'kill9':
                return self.killed()
            if death.kind == 'nccl':
                text.nccl_cascade(self.out, [0, 1])
                return 1
            lines, code = self.plain_failure(death, self.where(death.phase))
            self.engine_error(METHOD.get(death.phase, 'ppo_update'), lines, lines[-1])
            return code
        method = METHOD[death.phase]
        message = text.cuda_oom(death, self.torch)
        self.engine_error(method, text.traceback(self.where(death.phase), message), message,
                          'ref' if death.phase == 'ref_log_probs' else 'actor')
        return 1

    def finish(self):
        self.log('StatsLogger', 'Training completes! Total time elapsed %.2f.' % self.out.clock)


class _TooLong(Exception):
    pass
