# SPDX-License-Identifier: Apache-2.0
"""verl: main_ppo with hydra overrides over its own configuration tree."""

import copy

from . import text
from .memory import MIB, Engine, Load
from .parsers import Refused, flat, get, hydra, load_yaml, resolve
from .ray import RayTrainer
from .verl_facts import ARR, FUNC, METHOD, TIMER, TREE, WHERE


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
        raise Refused(
            text.traceback(
                [
                    (self.root + 'verl/trainer/main_ppo.py', 306, 'run', 'validate_config('),
                    (self.root + 'verl/' + where, 105, 'validate_config', 'raise'),
                ],
                error,
            )
        )

    def validate(self):
        a, g = ARR + 'actor.', self.get
        dynamic = g(a + 'use_dynamic_bsz')
        pairs = [
            (a + 'ppo_micro_batch_size', 'actor_rollout_ref.actor', dynamic),
            (
                ARR + 'rollout.log_prob_micro_batch_size',
                'actor_rollout_ref.rollout',
                g(ARR + 'rollout.log_prob_use_dynamic_bsz'),
            ),
        ]
        if g(a + 'use_kl_loss') or g('algorithm.use_kl_in_reward'):
            pairs.append(
                (
                    ARR + 'ref.log_prob_micro_batch_size',
                    'actor_rollout_ref.ref',
                    g(ARR + 'ref.log_prob_use_dynamic_bsz'),
                )
            )
        for key, name, free in pairs:
            old, new = g(key), g(key + '_per_gpu')
            leaf = key.rpartition('.')[2]
            if not free and old is None and new is None:
                self.fail(
                    'utils/config.py',
                    "ValueError: [%s] Please set at least one of '%s.%s' or '%s.%s_per_gpu'."
                    % (name, name, leaf, name, leaf),
                )
            if old is not None and new is not None:
                self.fail(
                    'utils/config.py',
                    "ValueError: [%s] You have set both '%s.%s' AND '%s.%s_per_gpu'. Please remove "
                    "'%s.%s' because only '*_per_gpu' is supported"
                    % (name, name, leaf, name, leaf, name, leaf),
                )
            for value in (old, new):
                if value is not None and (not isinstance(value, int) or value < 1):
                    self.fail(
                        'utils/config.py',
                        'ValueError: %s must be a positive integer, got %r' % (key, value),
                    )
        if g('data.train_batch_size') < g(a + 'ppo_mini_batch_size'):
            self.fail(
                'workers/config/actor.py',
                'ValueError: train_batch_size (%d) must be >= actor.ppo_mini_batch_size (%d)'
                % (g('data.train_batch_size'), g(a + 'ppo_mini_batch_size')),
            )
        sp = g(a + 'ulysses_sequence_parallel_size')
        if sp > 1 and not g(ARR + 'model.use_remove_padding'):
            self.fail(
                'workers/config/actor.py',
                'ValueError: When using sequence parallelism for actor/ref policy, you must '
                'enable `use_remove_padding`.',
            )
        heads = self.scenario.get('model', {}).get('heads', 28)
        if heads % sp or self.world % sp:
            self.fail(
                'workers/fsdp_workers.py',
                'AssertionError: num_attention_heads (%d) must be divisible by '
                'ulysses_sequence_parallel_size(%d)' % (heads, sp),
            )
        megatron = g(a + 'strategy') == 'megatron'
        n = g(ARR + 'rollout.n')
        real = g('data.train_batch_size') * n
        minimal = self.world
        if megatron:
            mp = g(a + 'megatron.tensor_model_parallel_size') * g(
                a + 'megatron.pipeline_model_parallel_size'
            )
            minimal = self.world // mp * (g(a + 'ppo_micro_batch_size_per_gpu') or 1)
        if not dynamic and real % minimal:
            self.fail(
                'utils/config.py',
                'AssertionError: real_train_batch_size (%d) must be divisible by minimal possible '
                'batch size (%d)' % (real, minimal),
            )
        if not dynamic:
            micro = g(a + 'ppo_micro_batch_size_per_gpu')
            per = g(a + 'ppo_mini_batch_size') * n * sp // self.world
            if micro and per % micro:
                self.fail(
                    'workers/fsdp_workers.py',
                    'AssertionError: normalized ppo_mini_batch_size %d should be divisible by '
                    'ppo_micro_batch_size_per_gpu %d' % (per, micro),
                )
        util = g(ARR + 'rollout.gpu_memory_utilization')
        if not isinstance(util, (int, float)) or not 0 < util <= 1:
            self.fail(
                'workers/config/rollout.py',
                'ValueError: gpu_memory_utilization must be in (0, 1], got %r' % util,
            )
        if g(ARR + 'rollout.tensor_model_parallel_size') > self.world or heads % g(
            ARR + 'rollout.tensor_model_parallel_size'
        ):
            self.fail(
                'workers/fsdp_workers.py',
                'AssertionError: rollout world_size: %d is not divisible by infer_tp: %d'
                % (self.world, g(ARR + 'rollout.tensor_model_parallel_size')),
            )

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
        lo = Load(
            shard='dist' if megatron else 'z3',
            cp=1,
            weight_bytes=2 if megatron or g(f + 'model_dtype') in ('bf16', 'bfloat16') else 4,
            grad_bytes=4,
            opt_bytes=12 if megatron else 8,
            trainable=0.02 if lora else 1.0,
            opt_offload=0.0,
            param_offload=offload,
            recompute='full' if ckpt else 'none',
            act_offload=bool(g(ARR + 'model.enable_activation_offload')),
            fused_loss=bool(
                g(ARR + 'model.use_fused_kernels') or g(ARR + 'model.use_liger') and False
            ),
            loss_recompute=bool(
                g(a + 'entropy_checkpointing') or g(a + 'entropy_from_logits_with_chunking')
            ),
            workers=g('data.dataloader_num_workers') / 8,
            init_host_full=0,
        )
        if megatron:
            t = g(a + 'megatron.override_transformer_config') or {}
            lo.recompute = t.get('recompute_granularity') or 'none'
            lo.tp = g(a + 'megatron.tensor_model_parallel_size')
            lo.pp = g(a + 'megatron.pipeline_model_parallel_size')
            if t.get('recompute_granularity') == 'full' and not t.get('recompute_method'):
                self.fail(
                    'workers/megatron_workers.py', 'ValueError: Unsupported recompute_method: None'
                )
        # offload between phases: the optimizer state leaves the card except for its step
        if g(f + 'optimizer_offload'):
            lo.opt_offload, lo.opt_returns = 1.0, True
        if g(f + 'param_offload'):
            lo.sync_host = lo.weight_bytes / 2.0 / max(1, self.world if not megatron else 1)
        lo.train_sleeps = bool(g(f + 'param_offload'))
        dynamic = g(a + 'use_dynamic_bsz')
        lo.tokens = (
            g(a + 'ppo_max_token_len_per_gpu')
            if dynamic
            else (g(a + 'ppo_micro_batch_size_per_gpu') or 1) * seq // sp
        )

        def log_prob(section):
            s = ARR + section + '.'
            if g(s + 'log_prob_use_dynamic_bsz'):
                return g(s + 'log_prob_max_token_len_per_gpu')
            return (g(s + 'log_prob_micro_batch_size_per_gpu') or 1) * seq // sp

        lo.lp_tokens, lo.ref_tokens = log_prob('rollout'), log_prob('ref')
        self.longest = seq
        self.room = [(v * sp) for v in ((lo.tokens,) if dynamic else ())]
        r = ARR + 'rollout.'
        lo.sync_buffer = (
            get(self.tree, r + 'checkpoint_engine.update_weights_bucket_megabytes') or 512
        ) * MIB
        lo.engine = Engine(
            'sglang' if g(r + 'name') == 'sglang' else 'vllm',
            g(r + 'gpu_memory_utilization'),
            tp=g(r + 'tensor_model_parallel_size'),
            sleeps=bool(g(r + 'free_cache_engine')),
            prefill_tokens=g(r + 'max_num_batched_tokens'),
            running=g(r + 'max_num_seqs'),
            graph_batch=0 if g(r + 'enforce_eager') else 128,
            max_len=g(r + 'max_model_len') or seq,
        )
        return lo

    def steps(self):
        out = [('init', 1), ('engine_init', 1)]
        for step in (1, 2, 3):
            out += [
                ('data', step),
                ('weight_sync', step),
                ('generation', step),
                ('log_probs', step),
            ]
            if self.get(ARR + 'actor.use_kl_loss') or self.get('algorithm.use_kl_in_reward'):
                out.append(('ref_log_probs', step))
            out += [('forward', step), ('backward', step), ('optimizer', step)]
        return out + [('checkpoint', 3)]

    def dump(self):
        self.out.say(
            '(TaskRunner pid=64309) [validate_config] All configuration checks passed successfully!',
            '(TaskRunner pid=64309) Training from scratch',
        )

    def before(self, phase, step):
        if phase == 'weight_sync':
            self.out.say(
                '(WorkerDict pid=14034) INFO:%s,113:Before load_fsdp_model_to_gpu, memory allocated (GB): 4.81'
                % self.out.stamp()
            )
        elif phase == 'forward' and self.room and min(self.room) < self.longest:
            raise _TooLong(min(self.room), self.longest)

    def after(self, phase, step):
        if phase == 'optimizer':
            self.out.say(
                '(TaskRunner pid=64309) step:%d - actor/entropy:0.312 - actor/pg_loss:0.002 - timing_s/gen:42.1 - '
                'timing_s/old_log_prob:7.9 - timing_s/update_actor:33.0 - perf/max_memory_allocated_gb:61.2'
                % step
            )

    def run(self):
        try:
            return super().run()
        except _TooLong as e:
            message = (
                'AssertionError: max_token_len must be greater than the sequence length. Got max_token_len=%d and '
                'max_seq_len=%d' % e.args
            )
            self.record('refused', code=1, text=message)
            self.out.err(*self.task_error('forward', message, 'AssertionError'))
            return 1

    def actor_of(self, phase):
        return self.actor, METHOD.get(phase, 'actor_rollout_update_actor'), self.module

    def driver_frames(self, phase):
        func, line = TIMER.get(phase, ('fit', 1603))
        return [
            (self.root + self.script, 42, 'main', 'run_ppo(config)'),
            (
                self.root + 'verl/trainer/ppo/ray_trainer.py',
                line,
                func,
                'output = self.actor_rollout_wg.%s(batch)'
                % METHOD.get(phase, 'update_actor').replace('actor_rollout_', ''),
            ),
        ]

    def where(self, phase):
        items = FUNC + WHERE.get(phase, [])
        return [(self.root + p if p.startswith('verl/') else p, n, f, c) for p, n, f, c in items]

    def crash(self, death):
        self.out.err('Error executing job with overrides: %s' % self.overrides)
        code = super().crash(death)
        self.out.err(
            '', 'Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.'
        )
        return code

    def wake_death(self, death):
        if self.get(ARR + 'rollout.name') == 'sglang':
            p = self.prefix('SGLangHttpServer', 93125)
            self.out.err(
                '[torch_memory_saver.cpp] cudaError error: 2 (out of memory)  file=csrc/core.cpp func=resume '
                'line=172',
                prefix=p,
            )
            self.worker_died('SGLangHttpServer')
        else:
            message = (
                'RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62'
            )
            lines = text.traceback(
                self.driver_frames('weight_sync') + text.RAY_GET,
                text.ray_task_error(
                    self.actor, 'actor_rollout_wake_up', self.module, 'RuntimeError'
                ),
            ) + text.frames(
                [(p, n, f, c) for p, n, f, c in self.where('init')[:2]]
                + [
                    ('vllm/v1/worker/gpu_worker.py', 131, 'wake_up', 'allocator.wake_up(tags)'),
                    ('vllm/device_allocator/cumem.py', 225, 'wake_up', 'create_and_map(handle)'),
                ]
            )
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
        self.out.say(
            "(TaskRunner pid=64309) 'Final validation metrics: {}'",
            'Training Progress: 100%|##########| 3/3',
        )


class _TooLong(Exception):
    pass
