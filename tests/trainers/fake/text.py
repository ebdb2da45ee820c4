# SPDX-License-Identifier: Apache-2.0
"""What PyTorch, NCCL, torchrun, Ray and Slurm print. Only facts of the formats live here."""

import os
import sys
import time

GIB = 1 << 30
MIB = 1 << 20
SITE = '/usr/local/lib/python3.12/dist-packages'


def size(n):
    """As torch's format_size."""
    if n < 1 << 10:
        return '%d bytes' % n
    if n < MIB:
        return '%.2f KiB' % (n / 1024)
    return '%.2f MiB' % (n / MIB) if n < GIB else '%.2f GiB' % (n / GIB)


class Out:
    """A stream with a prefix, and a clock that the trainer moves."""

    def __init__(self):
        self.clock = 0.0
        self.start = time.time()

    def stamp(self, form='%Y-%m-%d %H:%M:%S'):
        return time.strftime(form, time.gmtime(self.start + self.clock))

    def say(self, *lines, prefix=''):
        for line in lines:
            sys.stdout.write(prefix + line + '\n')

    def err(self, *lines, prefix=''):
        sys.stdout.flush()
        for line in lines:
            sys.stderr.write(prefix + line + '\n')
        sys.stderr.flush()


def frames(items):
    """items: (file, line, function, code)"""
    out = []
    for path, line, func, code in items:
        if not path.startswith('/'):
            path = SITE + '/' + path
        out += ['  File "%s", line %d, in %s' % (path, line, func), '    ' + code]
    return out


def traceback(items, error):
    return ['Traceback (most recent call last):'] + frames(items) + [error]


MODULE_CALL = [
    (
        'torch/nn/modules/module.py',
        1773,
        '_wrapped_call_impl',
        'return self._call_impl(*args, **kwargs)',
    ),
    ('torch/nn/modules/module.py', 1784, '_call_impl', 'return forward_call(*args, **kwargs)'),
]
AUTOGRAD = [
    ('torch/_tensor.py', 648, 'backward', 'torch.autograd.backward('),
    ('torch/autograd/__init__.py', 353, 'backward', '_engine_run_backward('),
    (
        'torch/autograd/graph.py',
        824,
        '_engine_run_backward',
        'return Variable._execution_engine.run_backward(  # Calls into the C++ engine',
    ),
]
RAY_GET = [
    ('ray/_private/auto_init_hook.py', 22, 'auto_init_wrapper', 'return fn(*args, **kwargs)'),
    ('ray/_private/client_mode_hook.py', 104, 'wrapper', 'return func(*args, **kwargs)'),
    (
        'ray/_private/worker.py',
        2882,
        'get',
        'values, debugger_breakpoint = worker.get_objects(object_refs, timeout=timeout)',
    ),
    ('ray/_private/worker.py', 968, 'get_objects', 'raise value.as_instanceof_cause()'),
]


def cuda_oom(o, torch='2.6', pid=4711):
    """o: a death with tried, total, free, mine, allocated, reserved, other"""
    name = 'torch.OutOfMemoryError' if torch >= '2.5' else 'torch.cuda.OutOfMemoryError'
    if torch < '2.1':
        return (
            '%s: CUDA out of memory. Tried to allocate %s (GPU %d; %s total capacity; %s already '
            'allocated; %s free; %s reserved in total by PyTorch) If reserved memory is >> '
            'allocated memory try setting max_split_size_mb to avoid fragmentation.  See '
            'documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF'
            % (
                name,
                size(o.tried),
                o.gpu,
                size(o.total),
                size(o.allocated),
                size(o.free),
                size(o.allocated + o.reserved),
            )
        )
    variable = 'PYTORCH_ALLOC_CONF' if torch >= '2.9' else 'PYTORCH_CUDA_ALLOC_CONF'
    if o.other:
        use = 'Process %d has %s memory in use. Process %d has %s memory in use.' % (
            pid + 931,
            size(o.other),
            pid,
            size(o.mine),
        )
    else:
        use = 'Including non-PyTorch memory, this process has %s memory in use.' % size(o.mine)
    return (
        '%s: CUDA out of memory. Tried to allocate %s. GPU %d has a total capacity of %s of which '
        '%s is free. %s Of the allocated memory %s is allocated by PyTorch, and %s is reserved by '
        'PyTorch but unallocated. If reserved but unallocated memory is large try setting '
        '%s=expandable_segments:True to avoid fragmentation.  See documentation for Memory '
        'Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)'
        % (
            name,
            size(o.tried),
            o.gpu,
            size(o.total),
            size(o.free),
            use,
            size(o.allocated),
            size(o.reserved),
            variable,
        )
    )


def nccl_cascade(out, ranks, prefix='[rank%d]:'):
    """What the ranks that did not fail print once one is gone."""
    stamp = out.stamp('%m%d %H:%M:%S') + '.424131'
    for rank in ranks:
        p = prefix % rank if '%d' in prefix else prefix
        out.err(
            p + '[E%s ProcessGroupNCCL.cpp:683] [Rank %d] Watchdog caught collective operation '
            'timeout: WorkNCCL(SeqNum=%d, OpType=ALLREDUCE, NumelIn=2097152, NumelOut=2097152, '
            'Timeout(ms)=600000) ran for 600033 milliseconds before timing out.'
            % (stamp, rank, 8071 + rank),
            p + '[E%s ProcessGroupNCCL.cpp:758] [Rank %d] To avoid data inconsistency, we are '
            'taking the entire process down.' % (stamp, rank),
            p + ' torch.distributed.DistBackendError: NCCL error in: '
            '/pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3690, remote process exited '
            'or there was a network error, NCCL version 2.27.3',
            p + ' ncclRemoteError: A call failed possibly due to a network error or a remote '
            'process exiting prematurely.',
        )


def child_failed(out, script, rank, code, world, launcher='torchrun'):
    """torchrun's last words."""
    stamp = out.stamp('%m%d %H:%M:%S') + '.130576'
    pid = 888546
    for r in range(min(world, 8)):
        if r != rank:
            out.err(
                'W%s 761556 torch/distributed/elastic/multiprocessing/api.py:900] Sending '
                'process %d closing signal SIGTERM' % (stamp, pid + r)
            )
    out.err(
        'E%s 761556 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: %d) '
        'local_rank: %d (pid: %d) of binary: /usr/bin/python3'
        % (stamp, code, rank % 8, pid + rank % 8)
    )
    kind = (
        'Signal 9 (SIGKILL) received by PID %d' % (pid + rank % 8)
        if code == -9
        else 'To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html'
    )
    out.err(
        *traceback(
            [
                ('/usr/local/bin/' + launcher, 8, '<module>', 'sys.exit(main())'),
                (
                    'torch/distributed/elastic/multiprocessing/errors/__init__.py',
                    357,
                    'wrapper',
                    'return f(*args, **kwargs)',
                ),
                ('torch/distributed/run.py', 901, 'main', 'run(args)'),
                (
                    'torch/distributed/launcher/api.py',
                    277,
                    'launch_agent',
                    'raise ChildFailedError(',
                ),
            ],
            'torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ',
        )
    )
    line = '=' * 60
    out.err(
        line,
        script + ' FAILED',
        '-' * 60,
        'Failures:',
        '  <NO_OTHER_FAILURES>',
        '-' * 60,
        'Root Cause (first observed failure):',
        '[0]:',
        '  time      : ' + out.stamp('%Y-%m-%d_%H:%M:%S'),
        '  host      : gpu042',
        '  rank      : %d (local_rank: %d)' % (rank, rank % 8),
        '  exitcode  : %d (pid: %d)' % (code, pid + rank % 8),
        '  error_file: <N/A>',
        '  traceback : ' + kind,
        line,
    )


def ray_actor_died(cls):
    return (
        'ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n'
        '\tclass_name: %s\n\tactor_id: 3245af38f4043989e1419ca13150c5fc01000000\n\tpid: 276736\n'
        '\tnamespace: 170b1f49-1536-593e\n\tip: 10.9.1.62\n'
        'The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR '
        'Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of '
        'file. There are some potential root causes. (1) The process is killed by SIGKILL by OOM '
        'killer due to high memory usage. (2) ray stop --force is called. (3) The worker is '
        'crashed unexpectedly due to SIGSEGV or other unexpected errors.' % cls
    )


def ray_task_error(cls, method, module, cause='OutOfMemoryError', pid=94377):
    return (
        'ray.exceptions.RayTaskError(%s): ray::%s.%s() (pid=%d, ip=10.1.52.133, '
        'actor_id=846534baf84947f766474bf3978d01000000, repr=<%s.%s object at 0x779295285730>)'
        % (cause, cls, method, pid, module, cls)
    )


def slurm_oom(out, step='batch'):
    job = os.environ.get('SLURM_JOB_ID', '991749')
    out.err(
        'slurmstepd: error: Detected 1 oom_kill event in StepId=%s.%s. Some of the step tasks '
        'have been OOM Killed.' % (job, step)
    )
