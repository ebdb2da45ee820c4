# SPDX-License-Identifier: Apache-2.0
"""AReaL: a controller script with --config x.yaml and hydra overrides, then a structured merge
that refuses keys that its dataclasses do not have."""

import copy
import re

from . import text
from .memory import GIB, MIB, Engine, Load
from .parsers import Refused, flags, flat, get, hydra, load_yaml, resolve
from .play import Trainer
from .areal_facts import DEFAULTS, ENGINE, METHOD, PRUNED, SCHEMA, USAGE, WHERE


def known(path):
    head, _, rest = path.partition('.')
    if any('.' + p in '.' + path for p in PRUNED):
        return True
    if head in ('actor', 'ref', 'critic', 'teacher'):
        return not rest or rest in ENGINE or any(e.startswith(rest + '.') for e in ENGINE)
    names = SCHEMA.get(head if rest or head in SCHEMA else '', '').split()
    key = rest or path
    return (
        key in names or any(n.startswith(key + '.') for n in names) or (not rest and head in SCHEMA)
    )


def backend(value, what):
    """kind and dimensions of a backend string; the checks of the allocation grammar."""
    spec = re.sub(r'\s', '', str(value))
    if '+' in spec:
        raise Refused(
            "ValueError: Expected a single-engine backend for %s, got '%s'" % (what, value)
        )
    m = re.fullmatch(r'(sglang|vllm|fsdp|megatron|archon)(\[\w+\])?:((?:[dtpce][1-9]\d*)+)', spec)
    if not m:
        m2 = re.fullmatch(
            r'megatron:\(?attn:((?:[cdtp][1-9]\d*)+)\|ffn:((?:[detp][1-9]\d*)+)\)?', spec
        )
        if m2:
            d = dict((k, int(n)) for k, n in re.findall(r'([a-z])(\d+)', m2.group(1)))
            d['e'] = dict((k, int(n)) for k, n in re.findall(r'([a-z])(\d+)', m2.group(2))).get(
                'e', 1
            )
            return 'megatron', {k: d.get(k, 1) for k in 'dtpce'}
        raise Refused(
            "lark.exceptions.UnexpectedCharacters: No terminal matches '%s' in the current parser "
            'context, at line 1 col 1' % (spec[:1] or '?')
        )
    kind = m.group(1)
    dims = {k: 1 for k in 'dtpce'}
    dims.update((k, int(n)) for k, n in re.findall(r'([a-z])(\d+)', m.group(3)))
    if kind in ('sglang', 'vllm') and (dims['c'] > 1 or dims['e'] > 1):
        raise Refused(
            "lark.exceptions.UnexpectedCharacters: No terminal matches 'c' in the current parser context"
        )
    if kind == 'fsdp' and (dims['p'] > 1 or dims['e'] > 1):
        raise Refused(
            'areal.api.alloc_mode.AllocationValidationError: FSDP backend only supports '
            'data/tensor/context parallelism.'
        )
    world = dims['d'] * dims['t'] * dims['p'] * dims['c']
    if dims['e'] > 1 and world % (dims['p'] * dims['e']):
        raise Refused(
            'AssertionError: Expert model parallel size %d cannot divide world size %d'
            % (dims['e'], world)
        )
    return kind, dims


class Areal(Trainer):
    name = 'areal'
    script = 'examples/math/gsm8k_rl.py'
    root = '/workspace/AReaL/'

    def parse(self):
        args, rest = flags(self.program, 'config:s', abbrev=True).parse_known_args(self.argv)
        if not args.config:
            raise Refused(
                [
                    'usage: %s [-h] --config CONFIG' % self.program,
                    '%s: error: the following arguments are required: --config' % self.program,
                ],
                2,
            )
        tree = hydra(copy.deepcopy(load_yaml(args.config)), rest, self.program)
        for path in flat(tree):
            if not known(path):
                leaf = path.rpartition('.')[2]
                raise Refused(
                    text.traceback(
                        [
                            (
                                self.root + 'areal/api/cli_args.py',
                                3552,
                                'load_expr_config',
                                'cfg = OmegaConf.merge(default_cfg, cfg)',
                            )
                        ],
                        "omegaconf.errors.ConfigKeyError: Key '%s' not in 'GRPOConfig'\n    full_key: %s\n    "
                        'object_type=GRPOConfig' % (leaf, path),
                    )
                )
        self.tree = resolve(tree)
        self.settings = flat(self.tree)
        self.check_values()

    def get(self, path):
        value = get(self.tree, path)
        return DEFAULTS.get(path) if value is None else value

    def check_values(self):
        for path in ('actor.backend', 'rollout.backend'):
            if not self.get(path):
                raise Refused(
                    "omegaconf.errors.MissingMandatoryValue: Missing mandatory value: %s" % path
                )
        for path, kind in (
            ('actor.mb_spec.max_tokens_per_mb', int),
            ('rollout.max_concurrent_rollouts', int),
            ('sglang.mem_fraction_static', float),
            ('actor.gradient_checkpointing', bool),
        ):
            value = self.get(path)
            if value is not None and not isinstance(value, (kind, int)):
                raise Refused(
                    "omegaconf.errors.ValidationError: Value '%s' of type '%s' could not be converted to %s\n"
                    '    full_key: %s'
                    % (value, type(value).__name__, kind.__name__.capitalize(), path)
                )
        self.train = backend(self.get('actor.backend'), 'actor')
        self.serve = backend(self.get('rollout.backend'), 'rollout')
        ref = self.get('ref.backend')
        if ref:
            backend(ref, 'ref')
        kind, d = self.train
        if self.get('actor.optimizer.type') not in ('adam', 'sgd', 'adam_bf16'):
            raise Refused(
                "ValueError: Unsupported optimizer type: %s" % self.get('actor.optimizer.type')
            )
        if (
            self.get('actor.fsdp.per_layer_optim_step')
            and self.get('actor.optimizer.type') != 'adam'
        ):
            raise Refused(
                text.traceback(
                    [
                        (
                            self.root + 'areal/engine/fsdp_engine.py',
                            474,
                            'initialize',
                            'raise ValueError(',
                        )
                    ],
                    "ValueError: per_layer_optim_step requires optimizer.type == 'adam', got '%s'"
                    % self.get('actor.optimizer.type'),
                )
            )
        if self.get('actor.fsdp.memory_efficient_load') and self.get('actor.init_from_scratch'):
            raise Refused(
                'ValueError: memory_efficient_load cannot be used with init_from_scratch=True'
            )
        if self.get('actor.weight_update_mode') not in ('disk', 'xccl', 'awex'):
            raise Refused(
                "ValueError: weight_update_mode must be one of disk, xccl, awex, got '%s'"
                % self.get('actor.weight_update_mode')
            )
        m = self.scenario.get('model', {})
        heads, kv = m.get('heads', 28), m.get('kv_heads', 4)
        if kind == 'fsdp' and (heads % d['t'] or kv % d['t']):
            raise Refused(
                'ValueError: tensor parallel size %d must divide num_attention_heads %d and '
                'num_key_value_heads %d' % (d['t'], heads, kv)
            )
        if heads % d['c']:
            raise Refused(
                'ValueError: Ulysses sequence parallel size %d must divide num_attention_heads %d'
                % (d['c'], heads)
            )
        if heads % self.serve[1]['t']:
            raise Refused('AssertionError: %d is not divisible by %d' % (heads, self.serve[1]['t']))
        size = [x['d'] * x['t'] * x['p'] * x['c'] for x in (d, self.serve[1])]
        gpus = (self.get('cluster.n_nodes') or 1) * (self.get('cluster.n_gpus_per_node') or 8)
        if sum(size) > gpus and self.hidden.get('separate', True):
            raise Refused(
                'ValueError: Not enough GPUs: %d needed by actor and rollout, %d in the cluster'
                % (sum(size), gpus)
            )
        self.world = size[0]
        if (
            self.get('actor.fsdp.optim_step_prefetch_layers') is not None
            and self.get('actor.fsdp.optim_step_prefetch_layers') < 0
        ):
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
        lo = Load(
            tp=d['t'],
            pp=d['p'],
            cp=d['c'],
            ep=d['e'],
            shard='dist' if kind == 'megatron' else 'z3',
            weight_bytes=storage,
            grad_bytes=4 if kind == 'megatron' else storage,
            opt_bytes={'sgd': 0, 'adam_bf16': 6}.get(
                g('actor.optimizer.type'), 4 if lean else 8 if kind == 'fsdp' else 12
            ),
            param_offload=bool(g('actor.fsdp.offload_params') or g('actor.archon.offload_params')),
            layer_step=bool(g('actor.fsdp.per_layer_optim_step')),
            workers=g('train_dataset.num_workers'),
            pinned=bool(g('train_dataset.pin_memory')),
            init_full=0 if efficient or kind != 'fsdp' else self.hidden.get('init_bytes', 2),
            init_host_full=storage if efficient else 0,
            sync_buffer=1024 * MIB,
            sync_disk=g('actor.weight_update_mode') == 'disk',
            recompute='none',
        )
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
            lo.engine = Engine(
                'sglang',
                g('sglang.mem_fraction_static'),
                tp=sd['t'],
                prefill_tokens=chunk if chunk and chunk > 0 else 8192,
                running=min(each, g('sglang.max_running_requests') or 4096),
                graph_batch=(
                    0 if g('sglang.disable_cuda_graph') else g('sglang.cuda_graph_max_bs') or 80
                ),
                max_len=min(g('sglang.context_length'), self.hidden.get('context', 4096)),
                offload_bytes=(g('sglang.cpu_offload_gb') or 0) * GIB,
            )
        else:
            lo.engine = Engine(
                'vllm',
                g('vllm.gpu_memory_utilization'),
                tp=sd['t'],
                prefill_tokens=8192,
                running=min(each, g('vllm.max_num_seqs')),
                max_len=g('vllm.max_model_len') or 32768,
                graph_batch=0 if g('vllm.enforce_eager') else 128,
            )
        lo.engine.colocated = self.hidden.get('colocated', False)
        lo.train_sleeps = lo.engine.colocated
        return lo

    def steps(self):
        out = [('init', 1), ('engine_init', 1)]
        for step in (1, 2, 3):
            out += [('generation', step), ('data', step)]
            if get(self.tree, 'ref'):
                out.append(('ref_log_probs', step))
            out += [
                ('log_probs', step),
                ('forward', step),
                ('backward', step),
                ('optimizer', step),
                ('weight_sync', step + 1),
            ]
        return out + [('checkpoint', 3)]

    def log(self, who, line, level='INFO'):
        self.out.say(
            '(AReaL) %s.153 %s %s: %s' % (self.out.stamp('%Y%m%d-%H:%M:%S'), who, level, line)
        )

    def usage(self, who, head):
        self.log(
            who,
            'Memory-Usage %s: memory allocated (GB): 32.86, memory reserved (GB): 49.24, device memory '
            'used/total (GB): 56.49/%.2f | host RssAnon: 15282MB, RssShmem: 627MB'
            % (head, self.scenario.get('gpu_gib', 79.15)),
        )

    def before(self, phase, step):
        if phase == 'init':
            self.usage('[FSDP Engine Rank 0]', 'before model creation/loading')
        elif phase == 'engine_init':
            self.log(
                'LocalScheduler', "Creating %d workers for role 'rollout'" % self.serve[1]['d']
            )
        elif phase == 'generation':
            self.log(
                'WorkflowExecutor',
                'Finish and accept rollout. Submit: 603, running: 54, accepted: %d.' % (600 * step),
            )
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
            self.engine_error(
                'ppo_update',
                text.traceback(
                    self.frames('ppo_update')
                    + [
                        (
                            self.root + 'areal/utils/seqpack.py',
                            240,
                            'ffd_allocate',
                            'raise RuntimeError(',
                        )
                    ],
                    message,
                ),
                message,
            )
            return 1

    def frames(self, key):
        return [
            (self.root + p if p.startswith('areal/') else p, n, f, c) for p, n, f, c in WHERE[key]
        ]

    def where(self, phase):
        if phase in ('forward', 'backward'):
            return self.frames('ppo_update') + self.frames(phase)
        if phase == 'optimizer':
            return self.frames('ppo_update')[:3] + self.frames('optimizer')
        return self.frames(
            {'ref_log_probs': 'log_probs'}.get(phase, phase if phase in WHERE else 'ppo_update')
        )

    def engine_error(self, method, body, message, role='actor'):
        self.log('EngineBlueprint', "Engine method '%s' failed: %s" % (method, message), 'ERROR')
        self.out.err(*body)
        self.controller(method, message, role, body)

    def controller(self, method, message, role, body):
        short = message.split('. Tried')[0] + '.'
        self.out.err(
            *text.traceback(
                [
                    (self.root + self.script, 51, '<module>', 'main(sys.argv[1:])'),
                    (
                        self.root + 'areal/trainer/rl_trainer.py',
                        826,
                        'train',
                        'self.actor.%s(adv_batch)' % method,
                    ),
                    (
                        self.root + 'areal/infra/scheduler/local.py',
                        1668,
                        'async_call_engine',
                        'raise EngineCallError(',
                    ),
                ],
                "areal.infra.scheduler.exceptions.EngineCallError: Failed to call method '%s' on worker '%s/%d': Engine "
                "method '%s' failed: %s"
                % (method, role, self.rank % max(1, self.world), method, short),
            )
        )
        self.log('LocalScheduler', "Deleting %d workers for role '%s'" % (self.world, role))
        self.out.err(
            "areal.infra.scheduler.exceptions.WorkerFailedError: Worker '%s/%d' failed with exit code -1"
            % (role, self.rank % max(1, self.world)),
            'Logs:',
        )
        self.out.err(*body, prefix='[%s] ' % role)

    def crash(self, death):
        if death.domain == 'host':
            if death.phase == 'init':
                self.log(
                    '[FSDP Engine Rank 0]', 'Loading weights on rank 0, host RssAnon: 251282MB'
                )
            text.slurm_oom(self.out)
            self.out.err(
                "areal.infra.scheduler.exceptions.WorkerFailedError: Worker 'actor/0' failed with exit code -9"
            )
            return 1
        if death.domain == 'shm':
            self.out.err(
                'ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient '
                'shared memory (shm).'
            )
            return 1
        if (
            death.kind in ('static', 'work', 'capture', 'load', 'startup', 'sampler', 'wake')
            or death.domain == 'kv_cache'
        ):
            if self.serve[0] == 'sglang':
                from .servers import sglang_death

                sglang_death(self.out, death, self.torch)
            else:
                from .servers import vllm_death

                vllm_death(self.out, death, self.torch)
            self.out.err(
                "areal.infra.scheduler.exceptions.WorkerFailedError: Worker 'rollout/0' failed with exit code -9"
            )
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
        self.engine_error(
            method,
            text.traceback(self.where(death.phase), message),
            message,
            'ref' if death.phase == 'ref_log_probs' else 'actor',
        )
        return 1

    def finish(self):
        self.log('StatsLogger', 'Training completes! Total time elapsed %.2f.' % self.out.clock)


class _TooLong(Exception):
    pass
