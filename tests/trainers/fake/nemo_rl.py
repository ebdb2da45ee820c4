# SPDX-License-Identifier: Apache-2.0
"""NeMo-RL: run_grpo.py --config x.yaml with hydra overrides on a struct configuration."""

import os

from . import text
from .memory import Engine, Load
from .parsers import Refused, flags, flat, hydra, load_yaml, resolve
from .ray import RayTrainer

BASE = '''
grpo: {num_prompts_per_step: 32, num_generations_per_prompt: 16, max_rollout_turns: 1, max_num_epochs: 1,
  max_num_steps: 1000000, normalize_rewards: true, val_period: 10, val_at_start: false, max_val_samples: 256,
  val_batch_size: 256, seed: 42, async_grpo: {enabled: false}}
loss_fn: {reference_policy_kl_penalty: 0.01, ratio_clip_min: 0.2, ratio_clip_max: 0.2, token_level_loss: true}
checkpointing: {enabled: true, checkpoint_dir: results/grpo, save_period: 10, keep_top_k: 3, save_optimizer: true}
policy:
  model_name: Qwen/Qwen2.5-1.5B
  tokenizer: {name: "${policy.model_name}"}
  train_global_batch_size: 512
  train_micro_batch_size: 4
  generation_batch_size: 32
  logprob_batch_size: ${policy.train_micro_batch_size}
  max_total_sequence_length: 512
  precision: bfloat16
  logprob_chunk_size: null
  offload_optimizer_for_logprob: false
  max_grad_norm: 1.0
  dtensor_cfg: {_v2: true, enabled: true, cpu_offload: false, sequence_parallel: false,
    activation_checkpointing: false, tensor_parallel_size: 1, context_parallel_size: 1}
  megatron_cfg: {enabled: false, activation_checkpointing: false, recompute_granularity: full,
    recompute_modules: null, empty_unused_memory_level: 1, fine_grained_activation_offloading: false,
    use_fused_linear_logprobs: false, tensor_model_parallel_size: 1, pipeline_model_parallel_size: 1,
    context_parallel_size: 1, expert_model_parallel_size: 1, sequence_parallel: false,
    optimizer: {optimizer: adam, optimizer_cpu_offload: false, optimizer_offload_fraction: 0.0,
      use_precision_aware_optimizer: true, overlap_cpu_optimizer_d2h_h2d: false, lr: 5.0e-06}}
  dynamic_batching: {enabled: false, sequence_length_round: 64,
    train_mb_tokens: "${mul:${policy.max_total_sequence_length}, ${policy.train_micro_batch_size}}",
    logprob_mb_tokens: "${mul:${policy.max_total_sequence_length}, ${policy.logprob_batch_size}}"}
  sequence_packing: {enabled: true, algorithm: modified_first_fit_decreasing, sequence_length_round: 64,
    train_mb_tokens: "${mul:${policy.max_total_sequence_length}, ${policy.train_micro_batch_size}}",
    logprob_mb_tokens: "${mul:${policy.max_total_sequence_length}, ${policy.logprob_batch_size}}"}
  optimizer: {name: torch.optim.AdamW, kwargs: {lr: 5.0e-06, weight_decay: 0.01}}
  generation:
    backend: vllm
    max_new_tokens: ${policy.max_total_sequence_length}
    temperature: 1.0
    vllm_cfg: {async_engine: false, kv_cache_dtype: auto, tensor_parallel_size: 1, pipeline_parallel_size: 1,
      gpu_memory_utilization: 0.6, max_model_len: "${policy.max_total_sequence_length}", enforce_eager: false}
    vllm_kwargs: {}
    colocated: {enabled: true, resources: {gpus_per_node: null, num_nodes: null}}
data: {max_input_seq_length: "${policy.max_total_sequence_length}", shuffle: true, num_workers: 1,
  train: {dataset_name: OpenMathInstruct-2}}
env: {math: {num_workers: 8}}
logger: {log_dir: logs, wandb_enabled: false, tensorboard_enabled: false, wandb: {project: grpo-dev, name: x}}
cluster: {gpus_per_node: 8, num_nodes: 1}
'''
W = 'nemo_rl/models/policy/workers/dtensor_policy_worker_v2.py'
METHOD = {
    'forward': 'train',
    'backward': 'train',
    'optimizer': 'train',
    'log_probs': 'get_logprobs',
    'ref_log_probs': 'get_reference_policy_logprobs',
    'weight_sync': 'stream_weights_via_ipc_zmq',
    'init': '__init__',
    'checkpoint': 'save_checkpoint',
    'generation': 'generate',
    'engine_init': '__init__',
}
WHERE = {
    'forward': [(W, 702, 'train', 'outputs = model(**model_args)')] + text.MODULE_CALL,
    'backward': [(W, 811, 'train', 'loss.backward()')] + text.AUTOGRAD,
    'optimizer': [
        (W, 858, 'train', 'self.optimizer.step()'),
        ('torch/optim/adamw.py', 220, 'step', 'has_complex = self._init_group('),
    ],
    'log_probs': [
        (W, 962, 'get_logprobs', 'token_logprobs = get_logprobs_from_vocab_parallel_logits(')
    ],
    'ref_log_probs': [
        (
            W,
            1041,
            'get_reference_policy_logprobs',
            'reference_logprobs = self.get_logprobs(data, micro_batch_size)',
        ),
        (W, 962, 'get_logprobs', 'token_logprobs = get_logprobs_from_vocab_parallel_logits('),
    ],
    'weight_sync': [
        (W, 1127, 'stream_weights_via_ipc_zmq', 'stream_weights_via_ipc_zmq_impl('),
        (
            'nemo_rl/models/policy/utils.py',
            438,
            'stream_weights_via_ipc_zmq_impl',
            'for name, tensor in params_generator:',
        ),
        ('torch/distributed/tensor/_api.py', 648, 'full_tensor', 'redist_res = self.redistribute('),
    ],
    'init': [
        (W, 241, '__init__', 'self.model = model_class.from_config('),
        (
            'torch/nn/modules/linear.py',
            106,
            '__init__',
            'torch.empty((out_features, in_features), **factory_kwargs)',
        ),
    ],
    'checkpoint': [
        (W, 1210, 'save_checkpoint', 'self.checkpoint_manager.save_checkpoint('),
        (
            'torch/distributed/checkpoint/state_dict.py',
            961,
            'get_model_state_dict',
            'model_state_dict = _get_model_state_dict(model, info)',
        ),
    ],
}
LINE = {
    'weight_sync': ('refit_policy_generation', 2391),
    'log_probs': ('grpo_train', 3218),
    'ref_log_probs': ('grpo_train', 3222),
    'generation': ('grpo_train', 2880),
}
MARK = {
    'generation': '▶ Generating responses for batch of size 512...',
    'log_probs': '▶ Computing logprobs...',
    'forward': '▶ Training policy...',
    'weight_sync': '▶ Preparing batch...',
    'init': '▶ Setting up compute cluster...',
}


class NemoRl(RayTrainer):
    name = 'nemo-rl'
    script = 'examples/run_grpo.py'
    root = '/opt/nemo-rl/'
    actor = 'DTensorPolicyWorkerV2'
    module = 'nemo_rl.models.policy.workers.dtensor_policy_worker_v2'

    def parse(self):
        import yaml

        args, rest = flags('run_grpo.py', 'config:s', abbrev=True).parse_known_args(self.argv)
        tree = yaml.safe_load(BASE)
        if args.config and os.path.exists(args.config):
            self.merge(tree, load_yaml(args.config))
        try:
            hydra(tree, rest, 'run_grpo.py')
        except Refused as r:
            raise Refused(
                text.traceback(
                    [
                        (
                            self.root + self.script,
                            92,
                            'main',
                            'config = parse_hydra_overrides(config, overrides)',
                        ),
                        (
                            self.root + 'nemo_rl/utils/config.py',
                            118,
                            'parse_hydra_overrides',
                            'raise OverridesError(',
                        ),
                    ],
                    'nemo_rl.utils.config.OverridesError: Failed to parse Hydra overrides: '
                    + r.lines[0]
                    + ' '
                    + (r.lines[2] if len(r.lines) > 2 else ''),
                )
            ) from r
        self.tree = resolve(tree)
        self.settings = flat(self.tree)
        p = self.tree['policy']
        if p['dynamic_batching']['enabled'] and p['sequence_packing']['enabled']:
            self.fail('AssertionError: Dynamic batching is exclusive of sequence packing')
        self.megatron = p['megatron_cfg']['enabled']
        if self.megatron and p['dtensor_cfg']['enabled']:
            self.fail(
                'ValueError: Configure either Megatron (policy.megatron_cfg.enabled=true) or DTensor '
                '(policy.dtensor_cfg.enabled=true), not both.'
            )
        mp = self.parallel()
        dp = self.world // (mp[0] * mp[1] * mp[2])
        micro, whole = p['train_micro_batch_size'], p['train_global_batch_size']
        if micro < 1 or whole % (micro * max(1, dp)):
            self.fail(
                'AssertionError: train_global_batch_size (%d) must be divisible by train_micro_batch_size (%d) * dp (%d)'
                % (whole, micro, dp)
            )
        o = p['megatron_cfg']['optimizer']
        if self.megatron and o['optimizer_cpu_offload'] and not o['use_precision_aware_optimizer']:
            self.fail(
                'AssertionError: The optimizer cpu offload must be used in conjunction with '
                '`--use-precision-aware-optimizer`'
            )

    @staticmethod
    def merge(into, more):
        more.pop('defaults', None)
        for key, value in more.items():
            if isinstance(value, dict) and isinstance(into.get(key), dict):
                NemoRl.merge(into[key], value)
            else:
                into[key] = value

    def fail(self, error):
        raise Refused(
            text.traceback(
                [(self.root + 'nemo_rl/models/policy/lm_policy.py', 88, '__init__', 'raise')], error
            )
        )

    def parallel(self):
        p = self.tree['policy']
        if self.megatron:
            m = p['megatron_cfg']
            return (
                m['tensor_model_parallel_size'],
                m['pipeline_model_parallel_size'],
                m['context_parallel_size'],
            )
        d = p['dtensor_cfg']
        return d['tensor_parallel_size'], 1, d['context_parallel_size']

    def load(self):
        p = self.tree['policy']
        m, d = p['megatron_cfg'], p['dtensor_cfg']
        tp, pp, cp = self.parallel()
        o = m['optimizer']
        lo = Load(
            tp=tp,
            pp=pp,
            cp=cp,
            shard='dist' if self.megatron else 'z3',
            weight_bytes=2 if self.megatron else 4,
            grad_bytes=4,
            opt_bytes=12 if self.megatron else 8,
            workers=self.tree['data']['num_workers'],
        )
        if self.megatron:
            lo.recompute = m['recompute_granularity'] if m['activation_checkpointing'] else 'none'
            lo.act_offload = m['fine_grained_activation_offloading']
            lo.fused_loss = m['use_fused_linear_logprobs']
            lo.opt_offload = (
                (o['optimizer_offload_fraction'] or 0) if o['optimizer_cpu_offload'] else 0.0
            )
        else:
            lo.recompute = 'full' if d['activation_checkpointing'] else 'none'
            lo.param_offload = d['cpu_offload']
        seq = p['max_total_sequence_length']
        packed = p['dynamic_batching']['enabled'] or p['sequence_packing']['enabled']
        which = 'dynamic_batching' if p['dynamic_batching']['enabled'] else 'sequence_packing'
        lo.tokens = (
            int(p[which]['train_mb_tokens']) if packed else p['train_micro_batch_size'] * seq
        ) // cp
        lo.lp_tokens = (
            int(p[which]['logprob_mb_tokens']) if packed else p['logprob_batch_size'] * seq
        ) // cp
        lo.tokens, lo.lp_tokens = max(lo.tokens, seq // cp), max(lo.lp_tokens, seq // cp)
        lo.lp_chunked = bool(p['logprob_chunk_size'])
        g = p['generation']
        v = g['vllm_cfg']
        ratio = float(os.environ.get('NRL_REFIT_BUFFER_MEMORY_RATIO', '0.3'))
        lo.sync_buffer = ratio * self.hidden.get('refit_free_gib', 12) * (1 << 30)
        lo.engine = Engine(
            'vllm',
            v['gpu_memory_utilization'],
            tp=v['tensor_parallel_size'],
            running=256,
            max_len=v['max_model_len'],
            graph_batch=0 if v['enforce_eager'] else 128,
            colocated=g['colocated']['enabled'],
            kv_bytes=1 if 'fp8' in v['kv_cache_dtype'] else 2,
        )
        self.offload_lp = p['offload_optimizer_for_logprob']
        return lo

    def check(self, card, phase, step):
        if phase in ('log_probs', 'ref_log_probs') and self.offload_lp:
            keep = card.load.opt_offload
            card.load.opt_offload = 1.0
            try:
                return super().check(card, phase, step)
            finally:
                card.load.opt_offload = keep
        return super().check(card, phase, step)

    def steps(self):
        out = [('engine_init', 1), ('init', 1)]
        for step in (1, 2, 3):
            out += [
                ('data', step),
                ('weight_sync', step),
                ('generation', step),
                ('log_probs', step),
                ('ref_log_probs', step),
                ('forward', step),
                ('backward', step),
                ('optimizer', step),
            ]
        return out + [('checkpoint', 3)]

    def dump(self):
        self.out.say(
            'Loaded configuration from: examples/configs/grpo_math_8B.yaml',
            'Applied CLI overrides',
            'Final config:',
            repr({k: self.tree[k] for k in ('grpo', 'cluster')}),
        )

    def before(self, phase, step):
        if phase == 'weight_sync':
            self.out.say(
                '', '========================= Step %d/1000000 =========================' % step
            )
        if phase == 'log_probs':
            self.out.say('▶ Processing rewards...,', '▶ Preparing for logprob inference...')
        if phase == 'forward':
            self.out.say('▶ Computing advantages...', '▶ Preparing for training...')
        if phase in MARK:
            self.out.say(MARK[phase])

    def after(self, phase, step):
        if phase == 'init':
            self.out.say('=' * 60, ' ' * 18 + 'SETUP COMPLETE', '=' * 60)
        elif phase == 'optimizer':
            self.out.say(
                '📊 Training Results:',
                '  • Loss: 0.0%d12' % step,
                '  • Generation KL Error: 0.0002',
            )

    def actor_of(self, phase):
        if phase in ('generation', 'engine_init'):
            return (
                'VllmGenerationWorker',
                METHOD[phase],
                'nemo_rl.models.generation.vllm.vllm_worker',
            )
        cls = 'MegatronPolicyWorker' if self.megatron else self.actor
        return cls, METHOD.get(phase, 'train'), self.module

    def driver_frames(self, phase):
        func, line = LINE.get(phase, ('grpo_train', 3335))
        return [
            (self.root + self.script, 241, '<module>', 'main()'),
            (self.root + self.script, 222, 'main', 'grpo_train('),
            (
                self.root + 'nemo_rl/algorithms/grpo.py',
                line,
                func,
                'futures = policy.' + METHOD.get(phase, 'train') + '(',
            ),
            (
                self.root + 'nemo_rl/distributed/worker_groups.py',
                955,
                'get_all_worker_results',
                'results = ray.get(futures)',
            ),
        ]

    def where(self, phase):
        return [
            (self.root + p if p.startswith('nemo_rl') else p, n, f, c)
            for p, n, f, c in WHERE.get(phase, WHERE['forward'])
        ]

    def wake_death(self, death):
        message = (
            'RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62'
        )
        head = text.ray_task_error(
            'VllmGenerationWorker',
            'wake_up',
            'nemo_rl.models.generation.vllm.vllm_worker',
            'RuntimeError',
        )
        self.out.err(
            *text.traceback(self.driver_frames('weight_sync') + text.RAY_GET, head),
            *text.frames(
                [
                    ('vllm/v1/worker/gpu_worker.py', 131, 'wake_up', 'allocator.wake_up(tags)'),
                    ('vllm/device_allocator/cumem.py', 225, 'wake_up', 'create_and_map(handle)'),
                ]
            ),
            message
        )
        return 1

    def engine_death(self, death):
        from .servers import vllm_death

        vllm_death(self.out, death, self.torch, prefix='(VllmGenerationWorker pid=6990) ')
        self.worker_died('VllmGenerationWorker')
        return 1

    def finish(self):
        self.out.say('Max number of steps has been reached, stopping training early')
