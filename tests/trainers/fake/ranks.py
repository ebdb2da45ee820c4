# SPDX-License-Identifier: Apache-2.0
"""Trainers that run as ranks under torchrun, accelerate, deepspeed or srun."""

import os

from . import text
from .play import Trainer


class RankTrainer(Trainer):
    prefix = '[rank%d]: '

    def main_frames(self):
        return [(self.root + self.script, 62, '<module>', 'main()')]

    def error(self, phase, message):
        """A traceback of the failing rank, as `[rankN]:` lines."""
        p = self.prefix % self.rank if '%' in self.prefix else self.prefix
        items = self.main_frames() + self.where(phase)
        self.out.err(*text.traceback(items, message), prefix=p)

    def others(self):
        ranks = [r for r in (0, 1, 5) if r != self.rank and r < self.world]
        if ranks:
            text.nccl_cascade(self.out, ranks)

    def crash(self, death):
        if death.domain == 'gpu':
            self.error(death.phase, text.cuda_oom(death, self.torch))
            self.others()
            return 1
        if death.domain == 'shm':
            self.out.err(
                'ERROR: Unexpected bus error encountered in worker. This might be caused by '
                'insufficient shared memory (shm).',
                '',
            )
            self.out.err(
                *text.traceback(
                    [
                        (
                            'torch/utils/data/dataloader.py',
                            1251,
                            '_try_get_data',
                            'data = self._data_queue.get(timeout=timeout)',
                        ),
                        (
                            'torch/utils/data/_utils/signal_handling.py',
                            73,
                            'handler',
                            '_error_if_any_worker_fails()',
                        ),
                    ],
                    'RuntimeError: DataLoader worker (pid 281635) is killed by signal: Bus error. It is '
                    "possible that dataloader's workers are out of shared memory. Please try to raise "
                    'your shared memory limit.',
                )
            )
            return 1
        if death.domain == 'host':
            return self.host_death(death)
        return self.other_death(death)

    def host_death(self, death):
        style = self.hidden.get('host_style', 'kernel')
        if style == 'allocator':
            self.error(
                death.phase,
                "RuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. "
                "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8589934592 "
                'bytes. Error code 12 (Cannot allocate memory)',
            )
            return 1
        if style == 'pinned':
            self.error(
                'pinned',
                'RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be '
                'asynchronously reported at some other API call, so the stacktrace below might '
                'be incorrect.',
            )
            return 1
        text.slurm_oom(self.out)
        return self.killed()

    def other_death(self, death):
        if death.kind in ('kill9', 'segv'):
            if death.kind == 'segv':
                self.out.err(
                    'Fatal Python error: Segmentation fault',
                    '',
                    'Thread 0x00007f2b6c7f9640 (most recent call first):',
                    '  File "%s/torch/autograd/graph.py", line 824 in _engine_run_backward'
                    % text.SITE,
                )
                os.abort()
            return self.killed()
        if death.kind == 'nccl':
            text.nccl_cascade(self.out, [0, 1])
            return 1
        lines, code = self.plain_failure(death, self.main_frames() + self.where(death.phase))
        self.out.err(*lines, prefix=self.prefix % self.rank if '%' in self.prefix else self.prefix)
        self.others()
        return code
