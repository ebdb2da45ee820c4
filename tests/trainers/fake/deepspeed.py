# SPDX-License-Identifier: Apache-2.0
"""A plain DeepSpeed script: `deepspeed train_ds.py --deepspeed ds.json …` with transformers' Trainer."""

from .hf import TRAINING_ARGS, HfTrainer, zero
from .parsers import Refused, flags
from . import text


class DeepSpeed(HfTrainer):
    name = 'deepspeed'
    script = 'train_ds.py'
    root = '/home/lchen/'
    prefix = ''

    def parse(self):
        spec = (
            TRAINING_ARGS.replace('@GC', 'false')
            + 'model_name_or_path:s max_seq_length:i=2048 data_path:s zero_stage:i offload:t'
        )
        parser = flags(self.script, spec, abbrev=True, both=True)
        args = parser.parse_args([a for a in self.argv if not a.startswith('--local_rank')])
        v = self.values = vars(args)
        self.settings = dict(v)
        if not v['deepspeed']:
            raise Refused(
                'AssertionError: DeepSpeed requires --deepspeed_config to specify configuration file'
            )
        ds = zero(v['deepspeed'])
        self.settings['ds'] = ds
        micro, gas, whole = (
            ds.get(k, 'auto')
            for k in (
                'train_micro_batch_size_per_gpu',
                'gradient_accumulation_steps',
                'train_batch_size',
            )
        )
        bad = [
            k
            for k, got, want in (
                ('per_device_train_batch_size', v['per_device_train_batch_size'], micro),
                ('gradient_accumulation_steps', v['gradient_accumulation_steps'], gas),
            )
            if want != 'auto' and got != want
        ]
        if bad:
            raise Refused(
                text.traceback(
                    [
                        (
                            'transformers/integrations/deepspeed.py',
                            272,
                            'trainer_config_finalize',
                            'raise ValueError(',
                        )
                    ],
                    'ValueError: Please correct the following DeepSpeed config values that mismatch TrainingArguments values:\n- ds %s'
                    '\nThe easiest method is to set these DeepSpeed config values to \'auto\'.'
                    % bad[0],
                )
            )
        m = v['per_device_train_batch_size']
        g = v['gradient_accumulation_steps']
        if whole != 'auto' and whole != m * g * self.world:
            raise Refused(
                text.traceback(
                    [
                        (
                            'deepspeed/runtime/config.py',
                            994,
                            '_batch_assertion',
                            'assert train_batch == micro_batch * grad_acc * self.world_size, (',
                        )
                    ],
                    'AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * '
                    'world_size %s != %d * %d * %d' % (whole, m, g, self.world),
                )
            )

    def load(self):
        return self.common(self.values, self.values['max_seq_length'])

    def before(self, phase, step):
        if phase == 'init':
            self.out.say(
                '[%s,113] [INFO] [comm.py:658:init_distributed] cdb=None' % self.out.stamp(),
                '[%s,120] [INFO] [logging.py:128:log_dist] [Rank 0] DeepSpeed info: '
                'version=0.16.4, git-hash=unknown, git-branch=unknown' % self.out.stamp(),
            )
        super().before(phase, step)

    def others(self):
        pass
