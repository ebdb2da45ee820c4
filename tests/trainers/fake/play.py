# SPDX-License-Identifier: Apache-2.0
"""Plays one attempt: parse as the framework does, walk through its phases, die or finish.

A framework is a subclass of Trainer that says how its settings are read (parse), what they mean
for memory (load), which phases come when (steps), and what is printed at each."""

import json
import os
import signal
import sys

from . import text
from .memory import GIB, MIB, Card
from .parsers import Refused

MOVING = ('activations', 'logits', 'bucket', 'step')
SECONDS = {
    'init': 90,
    'engine_init': 60,
    'generation': 45,
    'log_probs': 8,
    'ref_log_probs': 8,
    'forward': 12,
    'backward': 18,
    'optimizer': 4,
    'weight_sync': 6,
    'checkpoint': 20,
    'eval': 15,
    'data': 2,
    'collective': 1,
}
WATCHED = ('PYTORCH_', 'NCCL_', 'CUDA_', 'NRL_', 'RAY_', 'NVTE_')


class Death(Exception):
    """How the attempt ends badly: whose memory, or `none` and a kind of failure."""

    def __init__(self, domain, phase, kind='', **numbers):
        super().__init__(domain)
        self.domain, self.phase, self.kind = domain, phase, kind
        self.tried = self.total = self.free = self.mine = self.allocated = 0
        self.reserved = self.other = self.needed = 0
        self.gpu = 0
        self.__dict__.update(numbers)


def scenario():
    path = os.environ.get('FAKE_TRAINER')
    if not path:
        return {}
    with open(path) as f:
        return json.load(f)


def squeeze(card, terms, others, phase, gpu):
    """Allocates term by term; raises the death of the first one that does not fit.

    When little is missing the last allocation of that term fails, short of exactly that. When much
    is missing, or with "pieces" in the scenario, it is the first piece that does not fit, and the
    message states less than what is missing, as it mostly does in life."""
    room = card.capacity - card.context - int(others)
    holes = card.fragmented(terms)
    used = 0
    for term in terms:
        waste = holes if term.name in MOVING else 0
        if used + term.size + waste <= room:
            used += term.size
            continue
        missing = used + term.size + waste - room
        if card.hidden.get('pieces') or missing + 18 * MIB > min(term.size, 0.35 * card.capacity):
            whole = max(0, room - waste - used) // term.piece
            allocated, tried = used + whole * term.piece, term.piece
            free = max(room - waste - allocated, 18 * MIB)
            if tried <= free:
                free = max(1, tried // 3)
        else:
            tried = max(term.piece, missing + 18 * MIB)
            free = tried - missing
            allocated = max(0, room - waste - free)
        if room < 0:
            others = max(0, card.capacity - card.context - allocated - free)
        raise Death(
            'gpu',
            phase,
            term.name,
            tried=int(tried),
            total=card.capacity,
            free=int(free),
            mine=card.capacity - int(others) - int(free),
            allocated=int(allocated),
            reserved=waste,
            other=int(others),
            gpu=gpu,
        )
    return used


class Trainer:
    name = 'pytorch'
    script = 'train.py'
    host_style = 'kernel'  # kernel: SIGKILL and what Slurm says; ray: its memory monitor
    root = '/workspace/'

    def __init__(self, program, argv):
        self.scenario = scenario()
        self.hidden = self.scenario.get('hidden', {})
        self.program, self.argv = program, argv
        self.settings = {}
        self.ignored = []
        self.out = text.Out()
        self.world = self.scenario.get('world', 8)
        self.rank = self.hidden.get('rank', 3) % max(1, self.world)
        self.gpu = self.rank % 8
        self.torch = self.scenario.get('torch', '2.6')
        self.at = ('start', 0)

    # --- what a framework says ------------------------------------------------------------------

    def parse(self):
        raise NotImplementedError

    def load(self):
        raise NotImplementedError

    def steps(self):
        raise NotImplementedError

    def dump(self):
        """The framework's own print of its settings."""

    def before(self, phase, step):
        pass

    def after(self, phase, step):
        pass

    def where(self, phase):
        """Stack frames of this framework in that phase."""
        raise NotImplementedError

    def crash(self, death):
        """Prints the end; returns the exit code."""
        raise NotImplementedError

    def finish(self):
        pass

    # --- the run --------------------------------------------------------------------------------

    def expandable(self):
        conf = (
            os.environ.get('PYTORCH_CUDA_ALLOC_CONF', '')
            + ','
            + os.environ.get('PYTORCH_ALLOC_CONF', '')
        )
        return 'expandable_segments:true' in conf.lower()

    def check(self, card, phase, step):
        load = card.load
        host = card.host(phase)
        if host > card.host_limit:
            raise Death('host', phase, 'offload' if load.opt_offload or load.param_offload else '')
        if phase == 'data' and card.shm() > card.shm_limit:
            raise Death('shm', 'data')
        if phase == 'engine_init':
            self.engine_start(card)
        elif phase == 'generation':
            terms, others = card.generation(step)
            squeeze(card, terms, others, phase, self.gpu)
            self.requests(card)
        elif phase != 'data':
            terms, others = card.terms(phase, step)
            if phase == 'weight_sync' and load.engine and load.engine.colocated:
                used = sum(t.size for t in terms if t.name not in MOVING + ('gathered',))
                if used + others + card.context > card.capacity:
                    raise Death('gpu', phase, 'wake', total=card.capacity)
            squeeze(card, terms, others, phase, self.gpu)

    def engine_start(self, card):
        e, cap = card.load.engine, card.capacity
        weights, pool = card.engine_weights(), card.pool()
        need = e.max_len * card.model.kv_token * e.kv_bytes / e.tp
        busy = (
            self.hidden.get('neighbour_gib', 0)
            + (0 if card.load.train_sleeps or not e.colocated else card.weights() / GIB)
        ) * GIB
        if e.kind == 'vllm' and cap - busy - card.context < e.fraction * cap:
            raise Death(
                'gpu',
                'init',
                'startup',
                tried=int(e.fraction * cap),
                total=cap,
                free=int(cap - busy - card.context),
            )
        if weights + card.context + busy > cap:
            piece = max(1, int(weights / 60))
            free = min(piece // 2, 400 * MIB)
            raise Death(
                'gpu',
                'init',
                'load',
                tried=piece,
                total=cap,
                free=free,
                gpu=self.gpu,
                mine=int(cap - free - busy),
                allocated=int(cap - free - busy - card.context),
                reserved=60 * MIB,
                other=int(busy),
            )
        if pool <= 0:
            raise Death('kv_cache', 'init', 'none', fraction=e.fraction)
        if pool < need:
            raise Death(
                'kv_cache',
                'init',
                'short',
                needed=int(need),
                available=int(pool),
                fraction=e.fraction,
                max_len=e.max_len,
                fits=int(pool // (card.model.kv_token * e.kv_bytes / e.tp)) // 16 * 16,
            )
        graphs = card.engine_graphs()
        left = cap - card.context - busy - e.fraction * cap
        if graphs > left:
            piece = max(1, int(graphs / 20))
            free = max(1, min(piece // 2, int(max(left, 0) % piece)))
            raise Death(
                'gpu',
                'init',
                'capture',
                tried=piece,
                total=cap,
                free=free,
                gpu=self.gpu,
                mine=int(cap - free - busy),
                allocated=int(cap - free - busy - card.context),
                reserved=90 * MIB,
                other=int(busy),
            )

    def requests(self, card):
        """A dedicated server whose pool is too small for what runs at a time."""
        e = card.load.engine
        need = self.hidden.get('pool_tokens', 0) * card.model.kv_token * e.kv_bytes / e.tp
        if need > card.pool() and self.hidden.get('pool_tokens'):
            raise Death('kv_cache', 'generation', 'pool')

    def other_failure(self, phase, step):
        f = self.scenario.get('failure')
        if not f or f.get('phase', 'forward') != phase or f.get('step', 2) != step:
            return
        if f['kind'] == 'survived':
            self.survived(f)
        else:
            raise Death('none', phase, f['kind'], code=f.get('code', 1))

    def survived(self, failure):
        """Memory ran out somewhere and the framework went on."""
        self.out.say(
            '[torch_memory_saver.cpp] cuMemCreate CUDA_ERROR_OUT_OF_MEMORY (may not be an '
            'issue e.g. torch allocator will free cache and retry)'
        )

    def run(self):
        try:
            self.parse()
            load = self.load()
        except Refused as r:
            self.out.err(*r.lines)
            self.record('refused', code=r.code, text=r.lines[-1])
            return r.code
        load.world, load.expandable = self.world, self.expandable()
        load.per_node = min(8, self.world)
        card = Card(load, self.scenario)
        self.dump()
        try:
            for phase, step in self.steps():
                self.at = (phase, step)
                self.before(phase, step)
                self.other_failure(phase, step)
                self.check(card, phase, step)
                self.out.clock += SECONDS[phase]
                self.after(phase, step)
        except Death as death:
            self.out.clock += SECONDS.get(self.at[0], 1) / 2
            status = 'failed' if death.domain == 'none' else 'oom'
            self.record(
                status,
                domain=death.domain,
                phase=self.public(death.phase),
                kind=death.kind,
                numbers={'tried': death.tried, 'free': death.free, 'total': death.total},
            )
            sys.stdout.flush()
            return self.crash(death)
        self.finish()
        if os.environ.get('FAKE_TRAINER_PEAKS'):
            self.peaks(card)
        self.record('ok')
        return 0

    def peaks(self, card):
        """For whoever writes scenarios: what each phase took."""
        for phase in dict.fromkeys(p for p, _ in self.steps()):
            if phase in ('data', 'engine_init'):
                continue
            terms, others = card.generation(3) if phase == 'generation' else card.terms(phase, 3)
            total = sum(t.size for t in terms) + others + card.context + card.fragmented(terms)
            self.out.err(
                '%-13s %7.2f GiB of %.2f: other %.2f %s'
                % (
                    phase,
                    total / GIB,
                    card.capacity / GIB,
                    others / GIB,
                    ' '.join('%s %.2f' % (t.name, t.size / GIB) for t in terms if t.size),
                )
            )
        self.out.err(
            'host %.1f GiB of %.1f, shm %.2f GiB'
            % (card.host('forward') / GIB, card.host_limit / GIB, card.shm() / GIB)
        )

    @staticmethod
    def public(phase):
        return {'ref_log_probs': 'log_probs', 'engine_init': 'init'}.get(phase, phase)

    def record(self, status, **more):
        path = os.environ.get('FAKE_TRAINER_RECORD')
        if not path:
            return
        line = {
            'framework': self.name,
            'status': status,
            'program': self.program,
            'argv': self.argv,
            'settings': self.settings,
            'ignored': self.ignored,
            'gpu_seconds': round(self.out.clock * self.world),
            'env': {k: v for k, v in os.environ.items() if k.startswith(WATCHED)},
        }
        line.update(more)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(fd, (json.dumps(line, default=str, sort_keys=True) + '\n').encode())
        os.close(fd)

    def killed(self):
        """Ends as by SIGKILL."""
        sys.stdout.flush()
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGKILL)
        return 137

    def plain_failure(self, death, items):
        """(text lines, exit code) of a failure that has nothing to do with memory."""
        if death.kind == 'traceback':
            return text.traceback(items, "KeyError: 'response_length'"), 1
        if death.kind == 'garbage':
            return (
                text.traceback(
                    items,
                    'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate '
                    'more than 1EB memory.',
                ),
                1,
            )
        if death.kind == 'assertion':
            return (
                text.traceback(
                    items,
                    'AssertionError: found NaN in local grad norm for bucket #0 in '
                    'backward pass before data-parallel communication collective.',
                ),
                1,
            )
        if death.kind == 'cuda':
            return (
                text.traceback(
                    items,
                    'RuntimeError: CUDA error: an illegal memory access was '
                    'encountered\nCUDA kernel errors might be asynchronously reported at '
                    'some other API call, so the stacktrace below might be incorrect.',
                ),
                1,
            )
        return (
            text.traceback(items, 'ConnectionError: Couldn\'t reach the Hugging Face Hub'),
            death.code,
        )
