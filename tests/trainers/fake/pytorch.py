# SPDX-License-Identifier: Apache-2.0
"""A user's own PyTorch script under torchrun: argparse, DDP, nothing that a framework would know."""

from .memory import Load
from .parsers import flags
from .ranks import RankTrainer
from . import text

FLAGS = '''batch-size:i=8 seq-len:i=2048 lr:f epochs:i grad-accum:i=1 grad-checkpoint:t num-workers:i=4 pin-memory:t
data:s model:s out:s'''
WHERE = {
    'init': [('torch/nn/modules/module.py', 1343, 'to', 'return self._apply(convert)')],
    'forward': [('/home/user/train.py', 74, 'train', 'loss = model(batch).loss')]
    + text.MODULE_CALL,
    'backward': [('/home/user/train.py', 75, 'train', 'loss.backward()')] + text.AUTOGRAD,
    'optimizer': [
        ('/home/user/train.py', 77, 'train', 'optimizer.step()'),
        ('torch/optim/adamw.py', 220, 'step', 'has_complex = self._init_group('),
    ],
    'checkpoint': [('/home/user/train.py', 91, 'save', 'torch.save(model.state_dict(), path)')],
}


class PyTorch(RankTrainer):
    name = 'pytorch'
    script = 'train.py'
    root = '/home/user/'

    def parse(self):
        self.args = flags(self.program, FLAGS, both=True, abbrev=True).parse_args(self.argv)
        self.settings = dict(vars(self.args))

    def load(self):
        a = self.args
        return Load(
            shard='ddp',
            weight_bytes=4,
            grad_bytes=4,
            opt_bytes=8,
            tokens=a.batch_size * a.seq_len,
            recompute='full' if a.grad_checkpoint else 'none',
            workers=a.num_workers,
        )

    def steps(self):
        out = [('init', 1)]
        for step in (1, 2, 3):
            out += [('data', step), ('forward', step), ('backward', step), ('optimizer', step)]
        return out + [('checkpoint', 3)]

    def after(self, phase, step):
        if phase == 'optimizer':
            self.out.say('step %d loss 3.1%d' % (step, step))

    def where(self, phase):
        return WHERE.get(phase, WHERE['forward'])

    def finish(self):
        self.out.say('done')
