# SPDX-License-Identifier: Apache-2.0
"""slime: train.py under `ray job submit`, Megatron actors, SGLang engines on the same cards.

Unknown flags are ignored, as the Megatron parser behind it is called with
ignore_unknown_args=True; the sglang parser alone takes abbreviations."""

import json
import os

from . import megatron_args, text
from .memory import Engine
from .parsers import Refused, flags
from .ray import RayTrainer

FLAGS = '''
actor-num-nodes:i=1 actor-num-gpus-per-node:i=8 rollout-num-gpus:i rollout-num-gpus-per-engine:i=1
num-gpus-per-node:i=8 colocate:t offload:t offload-train:b offload-rollout:b train-backend:s=megatron
train-env-vars:s sglang-server-concurrency:i=512 sglang-router-ip:s sglang-router-port:i
sglang-config:s update-weight-mode:s=full update-weight-transport:s=nccl release-train:t
update-weight-disk-dir:s update-weight-buffer-size:i=536870912 update-weights-interval:i=1
keep-old-actor:t recompute-loss-function:t log-probs-chunk-size:i=-1 hf-checkpoint:s model-name:s
ref-load:s save-hf:s rollout-function-path:s rollout-temperature:f rollout-top-p:f rollout-top-k:i
rollout-max-context-len:i rollout-max-prompt-len:i rollout-max-response-len:i rollout-stop:s+
rollout-shuffle:t rollout-seed:i over-sampling-batch-size:i dynamic-sampling-filter-path:s
partial-rollout:t custom-generate-function-path:s use-fault-tolerance:t num-rollout:i num-epoch:i
prompt-data:s apply-chat-template:t input-key:s label-key:s metadata-key:s rollout-batch-size:i=32
n-samples-per-prompt:i=1 num-steps-per-rollout:i balance-data:t balance-by-flops:t
use-dynamic-batch-size:t max-tokens-per-gpu:i log-probs-max-tokens-per-gpu:i eval-prompt-data:s+
eval-config:s skip-eval-before-train:t n-samples-per-eval-prompt:i=1 eval-max-response-len:i
eval-top-p:f eval-temperature:f num-critic-only-steps:i eps-clip:f eps-clip-high:f kl-coef:f
loss-type:s kl-loss-type:s advantage-estimator:s=grpo use-kl-loss:t kl-loss-coef:f entropy-coef:f
gamma:f lambd:f normalize-advantages:t use-tis:t use-wandb:t wandb-mode:s wandb-key:s wandb-team:s
wandb-group:s use-tensorboard:t tb-project-name:s tb-experiment-name:s rm-type:s reward-key:s
custom-rm-path:s group-rm:t loss-mask-type:s data-pad-size-multiplier:i=128 memory-snapshot-dir:s
memory-snapshot-num-steps:i memory-recorder:s=torch{torch,memray} profile-target:s+
custom-config-path:s megatron-config-path:s qkv-format:s=thd debug-rollout-only:t debug-train-only:t
megatron-to-hf-mode:s
'''
SGLANG = '''
sglang-mem-fraction-static:f sglang-max-running-requests:i sglang-max-total-tokens:i
sglang-chunked-prefill-size:i sglang-max-prefill-tokens:i=16384 sglang-schedule-conservativeness:f
sglang-cuda-graph-max-bs:i sglang-disable-cuda-graph:t sglang-kv-cache-dtype:s sglang-page-size:i
sglang-cpu-offload-gb:i sglang-context-length:i sglang-dp-size:i sglang-ep-size:i
sglang-pp-size:i sglang-log-level:s sglang-attention-backend:s sglang-disable-radix-cache:t
sglang-enable-metrics:t sglang-cuda-graph-bs:i+ sglang-enable-dp-attention:t sglang-moe-a2a-backend:s
sglang-speculative-algorithm:s sglang-mamba-scheduler-strategy:s sglang-watchdog-timeout:f
'''
TIMER = {
    'log_probs': 'log_probs',
    'ref_log_probs': 'ref_log_probs',
    'weight_sync': 'update_weights',
    'checkpoint': 'save_model',
}
STEP_FILES = [
    ('backends/megatron_utils/model.py', 811, 'train', 'loss_dict, grad_norm = train_one_step('),
    (
        'backends/megatron_utils/model.py',
        661,
        'train_one_step',
        'losses_reduced = forward_backward_func(',
    ),
]
WORK = {
    'forward': [
        (
            'megatron/core/pipeline_parallel/schedules.py',
            641,
            'forward_backward_no_pipelining',
            'output_tensor, num_tokens = forward_step(',
        ),
        (
            'megatron/core/pipeline_parallel/schedules.py',
            423,
            'forward_step',
            'output_tensor, loss_func = forward_step_func(data_iterator, model)',
        ),
        ('megatron/core/models/gpt/gpt_model.py', 349, 'forward', 'hidden_states = self.decoder('),
        (
            'megatron/core/transformer/mlp.py',
            125,
            'forward',
            'intermediate_parallel = bias_swiglu_impl(',
        ),
    ],
    'logits': [
        (
            'megatron/core/pipeline_parallel/schedules.py',
            423,
            'forward_step',
            'output_tensor, loss_func = forward_step_func(data_iterator, model)',
        ),
        (
            'megatron/core/pipeline_parallel/schedules.py',
            301,
            'forward_step_calc_loss',
            'outputs = loss_func(output_tensor)',
        ),
    ],
    'backward': [
        (
            'megatron/core/pipeline_parallel/schedules.py',
            512,
            'backward_step',
            'custom_backward(output_tensor[0], output_tensor_grad[0])',
        ),
        (
            'megatron/core/pipeline_parallel/schedules.py',
            171,
            'custom_backward',
            'Variable._execution_engine.run_backward(',
        ),
    ],
    'optimizer': [
        (
            'megatron/core/optimizer/optimizer.py',
            1148,
            'step',
            'success = self.step_with_ready_grads()',
        ),
        (
            'megatron/core/optimizer/distrib_optimizer.py',
            2467,
            'step_with_ready_grads',
            'update_successful = super().step_with_ready_grads()',
        ),
    ],
}


class Slime(RayTrainer):
    name = 'slime'
    script = 'train.py'
    root = '/root/slime/'
    package = 'slime'
    megatron = '/root/Megatron-LM/'
    flags = FLAGS
    custom_config = True

    def parse(self):
        args, rest = flags(self.script, SGLANG, abbrev=True).parse_known_args(self.argv)
        parser = flags(self.script, self.flags + megatron_args.FLAGS)
        parser.parse_known_args(rest, args)
        _, self.ignored = parser.parse_known_args(rest)
        a = self.args = args
        # slime switches these on by itself
        a.use_distributed_optimizer = True
        if a.custom_config_path:
            from .parsers import load_yaml

            for key, value in load_yaml(a.custom_config_path).items():
                setattr(a, key, value)
        self.settings = dict(vars(a))
        megatron_args.check(a, self.megatron, self.world)
        self.check_framework(a)

    def refuse(self, line, error):
        path = '%s%s/utils/arguments.py' % (self.root, self.package)
        raise Refused(
            text.traceback([(path, line, 'slime_validate_args', 'raise ValueError(')], error)
        )

    def check_framework(self, a):
        if a.use_dynamic_batch_size and a.max_tokens_per_gpu is None:
            self.refuse(
                1702,
                'AssertionError: max_tokens_per_gpu must be set when use_dynamic_batch_size '
                'is set',
            )
        if a.balance_by_flops and not a.use_dynamic_batch_size:
            self.refuse(
                1710, 'AssertionError: --balance-by-flops requires --use-dynamic-batch-size'
            )
        if a.log_probs_chunk_size == 0 or a.log_probs_chunk_size < -1:
            self.refuse(1715, 'AssertionError: log_probs_chunk_size must be positive or -1')
        if (
            a.memory_recorder == 'memray'
            and a.memory_snapshot_dir
            and a.memory_snapshot_num_steps is None
        ):
            self.refuse(
                1730, 'AssertionError: memory_snapshot_num_steps must be set when using memray'
            )
        fraction = a.sglang_mem_fraction_static
        if fraction is not None and not 0 < fraction < 1:
            self.refuse(
                1740, 'ValueError: mem_fraction_static must be in (0, 1), got %s' % fraction
            )
        if (
            a.over_sampling_batch_size is not None
            and a.over_sampling_batch_size < a.rollout_batch_size
        ):
            self.refuse(
                1745,
                'AssertionError: over_sampling_batch_size should be greater than or equal '
                'to rollout_batch_size',
            )
        if a.use_dynamic_batch_size:
            a.micro_batch_size = 1
        batch, dp = a.global_batch_size, max(
            1,
            self.world
            // (
                a.tensor_model_parallel_size
                * a.pipeline_model_parallel_size
                * a.context_parallel_size
            ),
        )
        if not a.use_dynamic_batch_size and batch and batch % ((a.micro_batch_size or 1) * dp):
            self.refuse(
                1750,
                'AssertionError: global batch size (%d) is not divisible by micro batch size '
                '(%d) times data parallel size (%d)' % (batch, a.micro_batch_size or 1, dp),
            )

    def load(self):
        a = self.args
        lo = megatron_args.load(a, self.world, int(os.environ.get('NCCL_MAX_NCHANNELS', '32')))
        cp = a.context_parallel_size
        seq = self.scenario.get('model', {}).get('seq', 4096)
        if a.use_dynamic_batch_size:
            lo.tokens = max(a.max_tokens_per_gpu, -(-seq // cp))
        else:
            lo.tokens = (a.micro_batch_size or 1) * -(-seq // cp)
        lo.loss_recompute = a.recompute_loss_function
        lo.lp_chunked = a.log_probs_chunk_size > 0
        lo.sync_buffer = a.update_weight_buffer_size
        lo.sync_disk = a.update_weight_transport == 'disk'
        lo.train_sleeps = (
            a.offload_train if a.offload_train is not None else bool(a.colocate or a.offload)
        )
        lo.sync_host = 1.0 if a.colocate and getattr(a, 'enable_weights_backuper', True) else 0.0
        fraction = a.sglang_mem_fraction_static or 0.88
        chunk = a.sglang_chunked_prefill_size
        lo.engine = Engine(
            'sglang',
            fraction,
            tp=a.rollout_num_gpus_per_engine,
            colocated=bool(a.colocate),
            sleeps=(
                a.offload_rollout
                if a.offload_rollout is not None
                else bool(a.colocate or a.offload)
            ),
            prefill_tokens=chunk if chunk and chunk > 0 else min(a.sglang_max_prefill_tokens, 8192),
            running=min(a.sglang_max_running_requests or 256, a.sglang_server_concurrency),
            graph_batch=0 if a.sglang_disable_cuda_graph else a.sglang_cuda_graph_max_bs or 160,
            max_len=a.rollout_max_context_len or seq,
            kv_bytes=1 if (a.sglang_kv_cache_dtype or '').startswith('fp8') else 2,
        )
        return lo

    def steps(self):
        out = [('init', 1), ('engine_init', 1)]
        for step in (1, 2, 3):
            out += [('weight_sync', step)] if step == 1 else []
            out.append(('generation', step))
            out.append(('data', step))
            if self.args.ref_load:
                out.append(('ref_log_probs', step))
            out += [
                ('log_probs', step),
                ('forward', step),
                ('backward', step),
                ('optimizer', step),
                ('weight_sync', step + 1),
            ]
        return out + [('checkpoint', 3)]

    def dump(self):
        p = self.prefix(self.actor)
        self.out.say('------------------------ arguments ------------------------')
        for key in sorted(self.settings):
            self.out.say(
                '  %s %s %s' % (key, '.' * max(1, 48 - len(key)), getattr(self.args, key, None))
            )
        self.out.say('-------------------- end of arguments ---------------------')
        if 'memory' in (self.args.memory_snapshot_dir or ''):
            self.out.say('Attach OOM dump memory history.', prefix=p)

    def log(self, line):
        where = 'timer.py:24' if line.startswith('Timer') else 'actor.py:388'
        self.out.say(
            '[%s] %s - %s' % (self.out.stamp(), where, line), prefix=self.prefix(self.actor)
        )

    def before(self, phase, step):
        engine = self.prefix(self.engine_actor, 6990)
        if phase == 'init':
            self.log('Timer init_actor start' if self.package == 'relax' else 'Timer init start')
        elif phase == 'engine_init':
            self.out.say(
                '[%s TP0] Load weight begin. avail mem=78.21 GB' % self.out.stamp(), prefix=engine
            )
        elif phase == 'generation':
            if step > 1 and self.load_.train_sleeps:
                self.log('Timer sleep start')
                self.log('Timer sleep end (elapsed: 2.1s)')
            self.log('Timer train_wait start')
            self.out.say(
                '[%s TP0] Prefill batch. #new-seq: 27, #new-token: 2674, #cached-token: 2340, token '
                'usage: 0.12, #running-req: 54, #queue-req: 23, ' % self.out.stamp(),
                prefix=engine,
            )
        elif phase in ('ref_log_probs', 'log_probs'):
            if phase == ('ref_log_probs' if self.args.ref_load else 'log_probs'):
                self.log('Timer train_wait end (elapsed: 81.3s)')
                self.log('Timer train start')
            self.log('Timer %s start' % TIMER[phase])
        elif phase == 'forward':
            self.log('Timer actor_train start')
        elif phase in TIMER:
            self.log('Timer %s start' % TIMER[phase])

    def after(self, phase, step):
        if phase == 'engine_init':
            self.out.say(
                '[%s TP0] KV Cache is allocated. #tokens: 812031, K size: 18.59 GB, V size: 18.59 GB'
                % self.out.stamp(),
                '[%s TP0] max_total_num_tokens=812031, chunked_prefill_size=8192'
                % self.out.stamp(),
                prefix=self.prefix(self.engine_actor, 6990),
            )
        elif phase == 'generation':
            self.out.say(
                '[%s] rollout.py:702 - rollout %d: {\'rollout/response_lengths\': 3321.666, \'rollout/'
                'raw_reward\': 0.54266, \'rollout/truncated\': 0.15926}'
                % (self.out.stamp(), step - 1),
                prefix='(RolloutManager pid=81583) ',
            )
        elif phase == 'optimizer':
            self.log('Timer actor_train end (elapsed: 34.2s)')
            self.log('Timer train end (elapsed: 51.0s)')
            self.out.say(
                "[%s] model.py:649 - step %d: {'train/loss': 0.0021, 'train/grad_norm': 0.31}"
                % (self.out.stamp(), step - 1),
                prefix=self.prefix(self.actor),
            )
        elif phase in TIMER:
            self.log('Timer %s end (elapsed: 6.2s)' % TIMER[phase])

    def run(self):
        inner, self.load_ = self.load, None

        def kept():
            self.load_ = inner()
            return self.load_

        self.load = kept
        return super().run()

    # --- the end --------------------------------------------------------------------------------

    def actor_of(self, phase):
        method = {'weight_sync': 'update_weights', 'checkpoint': 'save_model', 'init': 'init'}.get(
            phase, 'train'
        )
        return self.actor, method, self.module

    def local(self, items):
        out = []
        for path, line, func, code in items:
            if path.startswith(('backends/', 'utils/', 'entrypoints/')):
                path = '%s%s/%s' % (self.root, self.package, path)
            elif path.startswith('megatron/'):
                path = self.megatron + path
            out.append((path, line, func, code))
        return out

    def where(self, phase, term=''):
        actor = 'backends/megatron_utils/actor.py'
        train = [
            (actor, 391, 'train', 'return self.train_actor(rollout_id, rollout_data)'),
            (actor, 527, 'train_actor', 'train('),
        ]
        if phase == 'init':
            items = [
                (
                    actor,
                    96,
                    'init',
                    '(self.model, self.optimizer, self.opt_param_scheduler, loaded_rollout_id) = initialize_model_and_optimizer(',
                ),
                (
                    'backends/megatron_utils/model.py',
                    980,
                    'initialize_model_and_optimizer',
                    'model, optimizer, opt_param_scheduler = setup_model_and_optimizer(args, role)',
                ),
                (
                    'backends/megatron_utils/model.py',
                    301,
                    'setup_model_and_optimizer',
                    'model = get_model(',
                ),
                (
                    'megatron/core/distributed/param_and_grad_buffer.py',
                    612,
                    '__init__',
                    'self.grad_data = torch.zeros(',
                ),
            ]
        elif phase in ('log_probs', 'ref_log_probs'):
            items = [
                train[0],
                (actor, 470, 'train_actor', 'self.compute_log_prob('),
                (actor, 366, 'compute_log_prob', 'return forward_only('),
                (
                    'backends/megatron_utils/model.py',
                    430,
                    'forward_only',
                    'forward_data_store += forward_backward_func(',
                ),
                (
                    'backends/megatron_utils/loss.py',
                    212,
                    'get_log_probs_and_entropy',
                    'log_prob, entropy = calculate_log_probs_and_entropy(',
                ),
            ]
        elif phase == 'weight_sync':
            items = [
                (actor, 604, 'update_weights', 'self.weight_updater.update_weights()'),
                (
                    'backends/megatron_utils/update_weight/update_weight_from_tensor.py',
                    141,
                    'update_weights',
                    'for hf_named_tensors in self._hf_weight_iterator.get_hf_weight_chunks(megatron_local_weights):',
                ),
                (
                    'backends/megatron_utils/update_weight/hf_weight_iterator_direct.py',
                    88,
                    'get_hf_weight_chunks',
                    'param = all_gather_param(self.args, info.name, param)',
                ),
            ]
        elif phase == 'checkpoint':
            items = [
                (
                    actor,
                    579,
                    'save_model',
                    'save(rollout_id, self.model, self.optimizer, self.opt_param_scheduler)',
                ),
                ('backends/megatron_utils/model.py', 952, 'save', 'save_checkpoint('),
                (
                    'megatron/training/checkpointing.py',
                    511,
                    'save_checkpoint',
                    'state_dict = generate_state_dict(',
                ),
            ]
        elif phase in ('forward', 'backward', 'optimizer'):
            items = train + STEP_FILES + WORK[phase]
            if phase == 'forward' and term == 'logits':
                items = (
                    train
                    + STEP_FILES
                    + WORK['logits']
                    + [
                        (
                            'backends/megatron_utils/loss.py',
                            561,
                            'get_log_probs_and_entropy',
                            'log_prob, entropy = calculate_log_probs_and_entropy(',
                        )
                    ]
                )
        else:
            items = train
        return self.local(items)

    def crash(self, death):
        if death.phase in ('forward', 'backward', 'optimizer', 'log_probs', 'ref_log_probs') and (
            self.rank == 0 or self.hidden.get('timers_after')
        ):
            # rank 0 logs the end of each timer on its way out, and then the next start
            name = TIMER.get(death.phase, 'actor_train')
            self.log('Timer %s end (elapsed: 3.2s)' % name)
            self.log('Timer train end (elapsed: 3.4s)')
            self.log('Timer train_wait start')
        if death.domain == 'gpu' and death.kind == 'logits':
            message = text.cuda_oom(death, self.torch)
            keep, self.where = self.where, lambda phase: keep(phase, 'logits')
            self.out.err(*self.task_error(death.phase, message, 'OutOfMemoryError'))
            return 1
        return super().crash(death)

    def wake_death(self, death):
        p = self.prefix(self.engine_actor, 93125)
        self.out.say('[torch_memory_saver.cpp] resume tag=weights pages=2231', prefix=p)
        self.out.err(
            '[torch_memory_saver.cpp] cudaError error: 2 (out of memory)  file=csrc/core.cpp '
            'func=resume line=172',
            'Fatal Python error: Aborted',
            '',
            'Thread 0x00006327c7f92700 (most recent call first):',
            '  <no Python frame>',
            prefix=p,
        )
        self.worker_died(self.engine_actor)
        return 1

    def engine_death(self, death):
        from .servers import sglang_death

        sglang_death(self.out, death, self.torch, prefix=self.prefix(self.engine_actor, 6990))
        self.worker_died(self.engine_actor)
        return 1

    def finish(self):
        self.out.say(
            '[%s] train.py:98 - Training finished.' % self.out.stamp(),
            prefix=self.prefix(self.actor),
        )


def json_roles(value):
    try:
        return json.loads(value) if value else {}
    except ValueError:
        return {}
