# SPDX-License-Identifier: Apache-2.0
"""Trainers whose workers are Ray actors: the driver sees a RayTaskError."""

from . import text
from .play import Trainer


class RayTrainer(Trainer):
    host_style = 'ray'
    actor = 'MegatronTrainRayActor'
    module = 'slime.backends.megatron_utils.actor'
    engine_actor = 'SGLangEngine'

    def actor_of(self, phase):
        """(class, method, module) of the actor that works in this phase."""
        return self.actor, 'train', self.module

    def prefix(self, cls, pid=31873):
        return '(%s pid=%d) ' % (cls, pid)

    def driver_frames(self, phase):
        return [
            (self.root + self.script, 106, '<module>', 'train(args)'),
            (
                self.root + self.script,
                72,
                'train',
                'ray.get(actor_model.async_train(rollout_id, rollout_data_ref))',
            ),
        ]

    def task_error(self, phase, message, cause):
        cls, method, module = self.actor_of(phase)
        head = text.ray_task_error(cls, method, module, cause)
        return (
            text.traceback(self.driver_frames(phase) + text.RAY_GET, head)
            + text.frames(self.where(phase))
            + [message]
        )

    def worker_died(self, cls):
        self.out.err(
            '(raylet, ip=10.9.1.62) A worker died or was killed while executing a task by an '
            'unexpected system error. To troubleshoot the problem, check the logs for the dead '
            'worker.'
        )
        self.out.err(
            *text.traceback(self.driver_frames('') + text.RAY_GET, text.ray_actor_died(cls))
        )

    def killed_by_monitor(self):
        total = self.scenario.get('host_gib', 1024)
        self.out.err(
            '(raylet, ip=10.9.1.62) [%s,113 E 2211 2211] (raylet) node_manager.cc:3193: 1 Workers (tasks '
            '/ actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at '
            'node (ID: 5136c0edda483683ce912e557b1cb132, IP: 10.9.1.62) over the last time period. To '
            'see more information about the Workers killed on this node, use `ray logs raylet.out -ip '
            '10.9.1.62`' % self.out.stamp()
        )
        self.out.err(
            *text.traceback(
                self.driver_frames('') + text.RAY_GET,
                'ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n'
                'Memory on the node (IP: 10.9.1.62, ID: 5136c0edda483683ce912e557b1cb132) where the task '
                '(actor ID: 3245af38f4043989e1419ca101000000, name=%s.__init__, pid=276736, memory used='
                '%.2fGB) was running was %.2fGB / %.2fGB (%.6f), which exceeds the memory usage threshold '
                'of 0.95. Ray killed this worker because it was the most recently scheduled task; to see '
                'more information about memory usage on this node, use `ray logs raylet.out -ip 10.9.1.62`.'
                % (self.actor, total * 0.41, total * 0.957, total, 0.957),
            )
        )
        return 1

    def crash(self, death):
        if death.domain == 'host':
            return self.killed_by_monitor()
        if death.domain == 'shm':
            self.out.err(
                'ERROR: Unexpected bus error encountered in worker. This might be caused by '
                'insufficient shared memory (shm).',
                prefix=self.prefix(self.actor),
            )
            self.worker_died(self.actor)
            return 1
        if death.domain == 'kv_cache':
            return self.engine_death(death)
        if death.domain == 'none':
            return self.other_death(death)
        if death.kind == 'wake':
            return self.wake_death(death)
        if death.kind in ('static', 'work', 'capture', 'load', 'startup'):
            return self.engine_death(death)
        message = text.cuda_oom(death, self.torch)
        self.out.err(*self.task_error(death.phase, message, 'OutOfMemoryError'))
        return 1

    def wake_death(self, death):
        raise NotImplementedError

    def engine_death(self, death):
        raise NotImplementedError

    def other_death(self, death):
        cls, _, _ = self.actor_of(death.phase)
        if death.kind == 'segv':
            self.out.err(
                '*** SIGSEGV received at time=1755500000 on cpu 12 ***',
                'PC: @     0x7f1a2c5d3b41  (unknown)  (unknown)',
                prefix=self.prefix(cls, 93125),
            )
            self.worker_died(cls)
            return 1
        if death.kind == 'kill9':
            return self.killed()
        if death.kind == 'nccl':
            text.nccl_cascade(self.out, [4, 5], prefix=self.prefix(cls) + '[rank%d]:')
            self.worker_died(cls)
            return 1
        lines, code = self.plain_failure(death, self.where(death.phase))
        if death.code != 1:
            self.out.err(*lines)
            return code
        cause = lines[-1].split(':')[0].rpartition('.')[2]
        head = text.ray_task_error(*self.actor_of(death.phase), cause)
        self.out.err(
            *text.traceback(self.driver_frames(death.phase) + text.RAY_GET, head), *lines[1:]
        )
        return code
