# SPDX-License-Identifier: Apache-2.0
"""torchtitan: tyro's flags over a TOML or a registered configuration."""

import re

from .memory import Load
from .parsers import Refused, yaml_value
from .ranks import RankTrainer
from . import text

OLD = {
    'training.local_batch_size': 8,
    'training.global_batch_size': -1,
    'training.seq_len': 2048,
    'training.enable_cpu_offload': False,
    'training.dtype': 'float32',
    'training.steps': 10000,
    'training.max_norm': 1.0,
    'training.mixed_precision_param': 'bfloat16',
    'training.dataset': 'c4',
    'training.gc_freq': 50,
    'activation_checkpoint.mode': 'selective',
    'activation_checkpoint.selective_ac_option': '2',
    'activation_checkpoint.memory_budget': 0.5,
    'parallelism.tensor_parallel_degree': 1,
    'parallelism.pipeline_parallel_degree': 1,
    'parallelism.context_parallel_degree': 1,
    'parallelism.data_parallel_shard_degree': -1,
    'parallelism.data_parallel_replicate_degree': 1,
    'parallelism.fsdp_reshard_after_forward': 'default',
    'parallelism.expert_parallel_degree': 1,
    'job.config_file': None,
    'job.dump_folder': './outputs',
    'job.description': '',
    'job.print_config': False,
    'profiling.enable_profiling': False,
    'profiling.enable_memory_snapshot': False,
    'metrics.log_freq': 10,
    'metrics.enable_tensorboard': False,
    'metrics.enable_wandb': False,
    'model.name': 'llama3',
    'model.flavor': '8B',
    'model.hf_assets_path': 'x',
    'optimizer.name': 'AdamW',
    'optimizer.lr': 8e-4,
    'optimizer.early_step_in_backward': False,
    'lr_scheduler.warmup_steps': 200,
    'checkpoint.enable': False,
    'checkpoint.folder': 'checkpoint',
    'checkpoint.interval': 500,
    'checkpoint.async_mode': 'disabled',
    'compile.enable': False,
    'compile.components': 'model',
    'comm.init_timeout_seconds': 300,
    'comm.train_timeout_seconds': 100,
    'memory_estimation.enabled': False,
}
NEW = {
    k: v
    for k, v in OLD.items()
    if not k.startswith(
        (
            'training.local',
            'training.global',
            'training.seq_len',
            'job.',
            'activation_checkpoint',
            'profiling',
        )
    )
}
NEW.update(
    {
        'training.num_tokens_per_microbatch_per_dp_rank': 16384,
        'training.num_tokens_per_train_step': -1,
        'training.max_context_length': 2048,
        'module': None,
        'config': None,
        'dump_folder': './outputs',
        'profiler.enable_memory_snapshot': False,
        'profiler.enable_profiling': False,
    }
)
WHERE = {
    'init': [
        ('torchtitan/trainer.py', 402, '__init__', 'model.to_empty(device=init_device)'),
        ('torch/nn/modules/module.py', 1048, 'to_empty', 'return self._apply('),
    ],
    'forward': [
        ('torchtitan/trainer.py', 1040, 'train', 'self.train_step(data_iterator)'),
        ('torchtitan/trainer.py', 880, 'train_step', 'loss = self.forward_backward_step('),
        ('torchtitan/trainer.py', 812, 'forward_backward_step', 'pred = model_parts[0](inputs)'),
    ]
    + text.MODULE_CALL
    + [('torchtitan/models/llama3/model/model.py', 441, 'forward', 'h = layer(h, self.freqs_cis)')],
    'backward': [
        ('torchtitan/trainer.py', 1040, 'train', 'self.train_step(data_iterator)'),
        ('torchtitan/trainer.py', 880, 'train_step', 'loss = self.forward_backward_step('),
        ('torchtitan/trainer.py', 820, 'forward_backward_step', 'loss.backward()'),
    ]
    + text.AUTOGRAD,
    'optimizer': [
        ('torchtitan/trainer.py', 1040, 'train', 'self.train_step(data_iterator)'),
        ('torchtitan/trainer.py', 910, 'train_step', 'self.optimizers.step()'),
        ('torchtitan/components/optimizer.py', 118, 'step', 'optimizer.step(*args, **kwargs)'),
        ('torch/optim/adamw.py', 220, 'step', 'has_complex = self._init_group('),
    ],
    'checkpoint': [
        (
            'torchtitan/trainer.py',
            1061,
            'train',
            'self.checkpointer.save(self.step, last_step=(self.step == job_config.training.steps))',
        ),
        ('torchtitan/components/checkpoint.py', 480, 'save', 'self.dcp_save('),
    ],
}


class Torchtitan(RankTrainer):
    name = 'torchtitan'
    script = 'torchtitan/train.py'
    root = '/app/torchtitan/'

    def parse(self):
        old = any(a.startswith('--job.config') for a in self.argv)
        table = dict(OLD if old else NEW)
        lowered = {re.sub('[-_]', '', k): k for k in table}
        v = dict(table)
        v.update(self.scenario.get('registry', {}))
        argv = list(self.argv)
        path = None
        for i, a in enumerate(argv):
            if re.match(r'--job\.config[-_]file', a):
                path = a.partition('=')[2] or (argv[i + 1] if i + 1 < len(argv) else None)
        if path:
            import tomllib

            try:
                with open(path, 'rb') as f:
                    for section, items in tomllib.load(f).items():
                        for key, value in items.items():
                            name = '%s.%s' % (section, key)
                            if name not in table:
                                raise Refused(
                                    'TypeError: %s.__init__() got an unexpected keyword argument \'%s\''
                                    % (section.title(), key)
                                )
                            v[name] = value
            except OSError as e:
                raise Refused(
                    ['Error while loading the configuration file: %s' % path, str(e)]
                ) from None
        i = 0
        while i < len(argv):
            name, eq, value = argv[i].partition('=')
            key = lowered.get(re.sub('[-_]', '', name[2:])) if name.startswith('--') else None
            negative = None
            if key is None and name.startswith('--'):
                head, _, leaf = name[2:].rpartition('.')
                if leaf.startswith('no-') or leaf.startswith('no_'):
                    negative = lowered.get(re.sub('[-_]', '', head + '.' + leaf[3:]))
            if key is None and negative is None:
                raise Refused(
                    [
                        '╭─ Unrecognized options ─────────────╮',
                        '│ Unrecognized options: %s │' % argv[i],
                        '│ For full helptext, run python -m ' 'torchtitan.train --help │',
                        '╰────────────────────────────────────╯',
                    ],
                    2,
                )
            if negative:
                v[negative] = False
            elif isinstance(table[key], bool):
                if eq:
                    raise Refused(
                        [
                            '╭─ Parsing error ─────────────────╮',
                            '│ Unrecognized options: %s │' % argv[i],
                            '╰──────────────────╯',
                        ],
                        2,
                    )
                v[key] = True
            else:
                if not eq:
                    if i + 1 >= len(argv):
                        raise Refused(
                            [
                                '╭─ Parsing error ───╮',
                                '│ Missing value for argument %s │' % name,
                                '╰────────────╯',
                            ],
                            2,
                        )
                    value, i = argv[i + 1], i + 1
                parsed = yaml_value(value)
                if isinstance(table[key], int) and not isinstance(parsed, int):
                    raise Refused(
                        [
                            '╭─ Parsing error ───────╮',
                            '│ Error parsing %s: invalid choice or type \'%s\' │' % (key, value),
                            '╰───────────────╯',
                        ],
                        2,
                    )
                v[key] = parsed
            i += 1
        self.settings = self.v = v
        self.old = old
        tp, pp, cp = (
            v['parallelism.%s_parallel_degree' % k] for k in ('tensor', 'pipeline', 'context')
        )
        if self.world % (tp * pp * cp):
            raise Refused(
                'AssertionError: Invalid parallel dims: dp_replicate(1) * dp_shard(-1) * cp(%d) * tp(%d) * pp(%d) != WORLD_SIZE(%d)'
                % (cp, tp, pp, self.world)
            )
        dp = self.world // (tp * pp * cp)
        if old:
            whole, local = v['training.global_batch_size'], v['training.local_batch_size']
            if local < 1 or (whole > 0 and whole % (local * dp)):
                raise Refused(
                    'AssertionError: global batch size must be multiple of local batch size times data-parallel degree (%d %% (%d * %d) != 0)'
                    % (whole, local, dp)
                )
            if v['activation_checkpoint.mode'] not in (
                'none',
                'full',
                'selective',
                'memory_budget',
            ):
                raise Refused(
                    [
                        '╭─ Parsing error ───╮',
                        "│ invalid choice '%s' for activation_checkpoint.mode │"
                        % v['activation_checkpoint.mode'],
                        '╰───╯',
                    ],
                    2,
                )
        else:
            whole, local = (
                v['training.num_tokens_per_train_step'],
                v['training.num_tokens_per_microbatch_per_dp_rank'],
            )
            if whole > 0 and whole % (local * dp):
                raise Refused(
                    'AssertionError: num_tokens_per_train_step must be a multiple of num_tokens_per_microbatch_per_dp_rank times the data-parallel degree'
                )
            if local < v['training.max_context_length']:
                raise Refused(
                    'ValueError: num_tokens_per_microbatch_per_dp_rank (%d) must be at least max_context_length (%d)'
                    % (local, v['training.max_context_length'])
                )

    def load(self):
        v = self.v
        tp, pp, cp = (
            v['parallelism.%s_parallel_degree' % k] for k in ('tensor', 'pipeline', 'context')
        )
        mode = (
            v['activation_checkpoint.mode']
            if self.old
            else self.scenario.get('registry_ac', 'selective')
        )
        lo = Load(
            shard='z3',
            tp=tp,
            pp=pp,
            cp=cp,
            weight_bytes=2 if v['training.dtype'] == 'bfloat16' else 4,
            grad_bytes=4,
            opt_bytes=8,
            param_offload=v['training.enable_cpu_offload'],
            recompute={'memory_budget': 'selective'}.get(mode, mode),
            workers=0,
        )
        if self.old:
            lo.tokens = v['training.local_batch_size'] * v['training.seq_len'] // cp
        else:
            lo.tokens = v['training.num_tokens_per_microbatch_per_dp_rank'] // cp
        return lo

    def steps(self):
        out = [('init', 1)]
        for step in (1, 2, 3):
            out += [('data', step), ('forward', step), ('backward', step), ('optimizer', step)]
        return out + [('checkpoint', 3)]

    def log(self, line):
        self.out.err(
            '[titan] %s - root - INFO - %s' % (self.out.stamp('%Y-%m-%d %H:%M:%S,113'), line),
            prefix='[rank0]:',
        )

    def before(self, phase, step):
        if phase == 'init':
            self.log('Starting job: Llama 3 training')
            self.log('Building llama3 8B')
        elif phase == 'data' and step == 1:
            self.log('Training starts at step 1')
        elif phase == 'checkpoint':
            self.log(
                'Saving the checkpoint (or staging if async is enabled).'
                if self.old
                else 'Saving a full checkpoint at last step, step 3.'
            )

    def after(self, phase, step):
        if phase == 'optimizer':
            self.log(
                '\x1b[31mstep: %2d  \x1b[32mloss:  7.1%d12  \x1b[33mgrad_norm:  1.2000  \x1b[34mmemory: 42.10GiB(53.20%%)  \x1b[36mtps: 5,412'
                % (step, step)
            )

    def survived(self, failure):
        self.out.err(
            '[titan] %s - root - WARNING - 2 CUDA memory allocation retries.'
            % self.out.stamp('%Y-%m-%d %H:%M:%S,113'),
            prefix='[rank0]:',
        )

    def where(self, phase):
        return [
            (self.root + p if p.startswith('torchtitan') else p, n, f, c)
            for p, n, f, c in WHERE.get(phase, WHERE['forward'])
        ]

    def main_frames(self):
        return [(self.root + self.script, 12, '<module>', 'main(Trainer)')]

    def finish(self):
        self.log('Training completed')
