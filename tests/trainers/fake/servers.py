# SPDX-License-Identifier: Apache-2.0
"""Inference servers: vLLM and SGLang by themselves, and how their engines die inside a trainer."""

import os

from . import text
from .memory import GIB, Engine, Load
from .parsers import Refused, flags
from .play import Trainer

SGL = text.SITE + '/sglang/srt/'
VLLM = 'vllm/v1/'
SGLANG_ADVICE = (
    'Possible solutions:\n1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n2. set '
    '--cuda-graph-max-bs to a smaller value (e.g., 16)\n3. disable torch compile by not using '
    '--enable-torch-compile\n4. disable CUDA graph by --disable-cuda-graph. (Not recommended. Huge '
    'performance loss)\nOpen an issue on GitHub https://github.com/sgl-project/sglang/issues/new/choose '
)


def sglang_death(out, death, torch, prefix=''):
    """The scheduler process of an SGLang server dies."""
    head = '[%s TP0] ' % out.stamp()
    start = [
        (SGL + 'managers/scheduler.py', 2510, 'run_scheduler_process', 'scheduler = Scheduler('),
        (SGL + 'managers/tp_worker.py', 82, '__init__', 'self.model_runner = ModelRunner('),
        (SGL + 'model_executor/model_runner.py', 241, 'initialize', 'self.load_model()'),
    ]
    loop = [
        (
            SGL + 'managers/scheduler.py',
            2534,
            'run_scheduler_process',
            'scheduler.event_loop_overlap()',
        ),
        (
            SGL + 'managers/scheduler.py',
            712,
            'event_loop_overlap',
            'result = self.run_batch(batch)',
        ),
        (
            SGL + 'managers/scheduler.py',
            1641,
            'run_batch',
            'self.tp_worker.forward_batch_generation(model_worker_batch)',
        ),
    ]
    message = text.cuda_oom(death, torch) if death.total else ''
    if death.domain == 'kv_cache' and death.kind == 'pool':
        lines = [
            'Prefill out of memory. Try to lower your batch size.',
            'Try to allocate 8192 tokens.',
            'Available tokens: 1042',
            'self.token_to_kv_pool_allocator.available_size()=1042',
        ]
        out.err(*lines[:1], prefix=prefix + head)
        out.err(*lines[1:], prefix=prefix)
        body = text.traceback(
            loop,
            'RuntimeError: Prefill out of memory. Try to lower your batch size.\n'
            'Try to allocate 8192 tokens.',
        )
    elif death.domain == 'kv_cache':
        body = text.traceback(
            start[:2]
            + [
                (
                    SGL + 'model_executor/model_runner.py',
                    1120,
                    'init_memory_pool',
                    'raise RuntimeError(',
                )
            ],
            'RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. [Current value: '
            'mem_fraction_static=%s]' % death.fraction,
        )
    elif death.kind == 'capture':
        inner = text.traceback(
            [
                (SGL + 'model_executor/cuda_graph_runner.py', 374, '__init__', 'self.capture()'),
                (
                    SGL + 'model_executor/cuda_graph_runner.py',
                    512,
                    'capture_one_batch_size',
                    'run_once()',
                ),
            ],
            message,
        )
        body = (
            inner
            + ['', 'During handling of the above exception, another exception occurred:', '']
            + text.traceback(
                start[:2]
                + [
                    (
                        SGL + 'model_executor/cuda_graph_runner.py',
                        376,
                        '__init__',
                        'raise Exception(',
                    )
                ],
                'Exception: Capture cuda graph failed: '
                + message.split(': ', 1)[1]
                + '\n'
                + SGLANG_ADVICE,
            )
        )
    elif death.kind in ('load', 'startup'):
        body = text.traceback(
            start
            + [(SGL + 'model_loader/loader.py', 420, 'load_model', 'model = _initialize_model(')],
            message,
        )
    else:
        body = text.traceback(
            loop
            + [
                (
                    SGL + 'model_executor/model_runner.py',
                    1702,
                    'forward_extend',
                    'return self.model.forward(',
                ),
                (
                    SGL + 'models/qwen2.py',
                    421,
                    'forward',
                    'hidden_states = self.model(input_ids, positions, forward_batch)',
                ),
                (
                    SGL + 'layers/activation.py',
                    62,
                    'forward_cuda',
                    'out = torch.empty(output_shape, dtype=x.dtype, device=x.device)',
                ),
            ],
            message,
        )
    out.err(
        head + 'Scheduler hit an exception: ' + body[0],
        *'\n'.join(body[1:]).split('\n'),
        prefix=prefix
    )


def vllm_frames(kind):
    core = [
        (
            VLLM + 'engine/core.py',
            691,
            'run_engine_core',
            'engine_core = EngineCoreProc(*args, **kwargs)',
        ),
        (
            VLLM + 'engine/core.py',
            192,
            '_initialize_kv_caches',
            'available_gpu_memory = self.model_executor.determine_available_memory()',
        ),
    ]
    worker = VLLM + 'worker/gpu_worker.py'
    return {
        'startup': core[:1] + [(worker, 181, 'init_device', 'raise ValueError(')],
        'load': core[:1]
        + [
            (worker, 210, 'load_model', 'self.model_runner.load_model()'),
            (
                'vllm/model_executor/model_loader/base_loader.py',
                44,
                'load_model',
                'model = initialize_model(vllm_config=vllm_config,',
            ),
        ],
        'none': core
        + [
            (
                VLLM + 'core/kv_cache_utils.py',
                641,
                'check_enough_kv_cache_memory',
                'raise ValueError(',
            )
        ],
        'short': core
        + [
            (
                VLLM + 'core/kv_cache_utils.py',
                661,
                'check_enough_kv_cache_memory',
                'raise ValueError(',
            )
        ],
        'capture': core[:1]
        + [
            (worker, 402, 'compile_or_warm_up_model', 'self.model_runner.capture_model()'),
            (
                VLLM + 'worker/gpu_model_runner.py',
                3310,
                'capture_model',
                'self._capture_cudagraphs(',
            ),
        ],
        'sampler': core[:1]
        + [
            (worker, 420, 'compile_or_warm_up_model', 'self.model_runner._dummy_sampler_run('),
            (
                VLLM + 'worker/gpu_model_runner.py',
                3012,
                '_dummy_sampler_run',
                'raise RuntimeError(',
            ),
        ],
    }.get(
        kind,
        core[:1]
        + [
            (worker, 551, 'execute_model', 'output = self.model_runner.execute_model('),
            (
                VLLM + 'worker/gpu_model_runner.py',
                2260,
                'execute_model',
                'model_output = self.model(',
            ),
            ('vllm/model_executor/models/qwen2.py', 502, 'forward', 'hidden_states = self.model('),
        ],
    )


def vllm_message(death, torch):
    if death.kind == 'startup':
        return (
            'ValueError: Free memory on device cuda:0 (%.2f/%.2f GiB) on startup is less than desired GPU '
            'memory utilization (%s, %.2f GiB). Decrease GPU memory utilization or reduce GPU memory used by '
            'other processes.'
            % (
                death.free / GIB,
                death.total / GIB,
                round(death.tried / death.total, 4),
                death.tried / GIB,
            )
        )
    if death.kind == 'none':
        return (
            'ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` '
            'when initializing the engine.'
        )
    if death.kind == 'short':
        return (
            "ValueError: To serve at least one request with the models's max seq len (%d), (%.2f GiB KV cache "
            'is needed, which is larger than the available KV cache memory (%.2f GiB). Based on the available '
            'memory, the estimated maximum model length is %d. Try increasing `gpu_memory_utilization` or '
            'decreasing `max_model_len` when initializing the engine.'
            % (death.max_len, death.needed / GIB, death.available / GIB, death.fits)
        )
    if death.kind == 'sampler':
        return (
            'RuntimeError: CUDA out of memory occurred when warming up sampler with %d dummy requests. Please '
            'try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine.'
            % death.running
        )
    return text.cuda_oom(death, torch)


def vllm_death(out, death, torch, prefix=''):
    stamp = out.stamp('%m-%d %H:%M:%S')
    lines = text.traceback(vllm_frames(death.kind), vllm_message(death, torch))
    kind = (
        'EngineCore failed to start.'
        if death.phase != 'generation'
        else 'EngineCore encountered a fatal error.'
    )
    for line in [kind] + '\n'.join(lines).split('\n'):
        out.err('%sERROR %s [core.py:700] %s' % (prefix, stamp, line))


class Server(Trainer):
    host_style = 'kernel'

    def steps(self):
        return [('engine_init', 1)] + [('generation', s) for s in (1, 2, 3)]

    def where(self, phase):
        return vllm_frames('run')

    def server_load(self, engine):
        engine.colocated = False
        return Load(world=self.world, tp=engine.tp, workers=0, engine=engine, train_sleeps=True)

    def crash(self, death):
        if death.domain == 'host':
            text.slurm_oom(self.out)
            return self.killed()
        if death.domain == 'none':
            if death.kind == 'kill9':
                return self.killed()
            lines, code = self.plain_failure(death, self.where(death.phase))
            self.out.err(*lines)
            return code
        self.engine_end(death)
        return 1


class Vllm(Server):
    name = 'vllm'
    script = 'serve'
    FLAGS = '''model:s host:s port:i dtype:s tokenizer:s served-model-name:s+ trust-remote-code:t seed:i
    gpu-memory-utilization:f=0.9 kv-cache-memory-bytes:i max-model-len:s max-num-seqs:i=256
    max-num-batched-tokens:i enforce-eager:b=false kv-cache-dtype:s=auto{auto,fp8,fp8_e4m3,fp8_e5m2,bfloat16}
    cpu-offload-gb:f=0 kv-offloading-size:f swap-space:f=4 enable-sleep-mode:b=false
    tensor-parallel-size:i=1 pipeline-parallel-size:i=1 data-parallel-size:i=1 enable-prefix-caching:b
    enable-chunked-prefill:b block-size:i quantization:s load-format:s download-dir:s api-key:s
    disable-log-requests:t disable-log-stats:t enable-auto-tool-choice:t tool-call-parser:s
    reasoning-parser:s chat-template:s uvicorn-log-level:s enable-expert-parallel:b config:s
    distributed-executor-backend:s max-logprobs:i revision:s enable-lora:b max-loras:i
    compilation-config:s generation-config:s hf-overrides:s'''

    def parse(self):
        argv = [
            a.replace('_', '-', a.split('=')[0].count('_')) if a.startswith('--') else a
            for a in self.argv
        ]
        argv = argv[1:] if argv[:1] == ['serve'] else argv
        parser = flags('vllm serve', self.FLAGS, both=True)
        parser.add_argument('model_tag', nargs='?')
        if '--config' in argv:
            from .parsers import load_yaml

            path = argv[argv.index('--config') + 1]
            extra = []
            for key, value in load_yaml(path).items():
                if isinstance(value, bool):
                    extra += ['--' + key.replace('_', '-')] if value else []
                else:
                    extra += ['--' + key.replace('_', '-'), str(value)]
            argv = (
                argv[:1] + extra + argv[1:]
                if argv and not argv[0].startswith('-')
                else extra + argv
            )
        a = self.args = parser.parse_args(argv)
        self.settings = dict(vars(a))
        if not 0 < a.gpu_memory_utilization <= 1:
            raise Refused(
                [
                    'pydantic_core._pydantic_core.ValidationError: 1 validation error for CacheConfig',
                    'gpu_memory_utilization',
                    '  Value error, GPU memory utilization must be less than '
                    '1.0. Got %s.' % a.gpu_memory_utilization,
                ]
            )
        model = self.scenario.get('model', {})
        if model.get('heads', 28) % a.tensor_parallel_size:
            raise Refused(
                [
                    'pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig',
                    '  Value error, Total number of attention heads (%d) must be divisible by tensor '
                    'parallel size (%d).' % (model.get('heads', 28), a.tensor_parallel_size),
                ]
            )
        if a.tensor_parallel_size * a.pipeline_parallel_size * a.data_parallel_size > self.world:
            raise Refused(
                'ValueError: Tensor parallel size (%d) cannot be larger than the number of available '
                'GPUs (%d).' % (a.tensor_parallel_size, self.world)
            )
        length = str(a.max_model_len or model.get('seq', 32768)).lower()
        self.max_len = int(float(length[:-1]) * 1024) if length.endswith('k') else int(length)
        batched = a.max_num_batched_tokens or 8192
        if batched < a.max_num_seqs:
            raise Refused(
                'ValueError: max_num_batched_tokens (%d) must be greater than or equal to max_num_seqs '
                '(%d).' % (batched, a.max_num_seqs)
            )

    def load(self):
        a = self.args
        e = Engine(
            'vllm',
            a.gpu_memory_utilization,
            tp=a.tensor_parallel_size,
            prefill_tokens=a.max_num_batched_tokens or 8192,
            running=a.max_num_seqs,
            graph_batch=0 if a.enforce_eager else min(512, a.max_num_seqs),
            max_len=self.max_len,
            kv_bytes=1 if a.kv_cache_dtype.startswith('fp8') else 2,
            offload_bytes=a.cpu_offload_gb * GIB,
        )
        return self.server_load(e)

    def dump(self):
        changed = {k: v for k, v in self.settings.items() if v not in (None, False)}
        self.out.err(
            '(APIServer pid=681845) INFO %s [utils.py:233] non-default args: %s'
            % (self.out.stamp('%m-%d %H:%M:%S'), changed)
        )

    def check(self, card, phase, step):
        if phase == 'engine_init':
            from .play import Death

            e = card.load.engine
            sampler = e.running * card.model.vocab * 4 * 3
            spare = card.capacity * (1 - e.fraction) - card.context
            if sampler > spare + self.hidden.get('sampler_slack_gib', 6) * GIB:
                raise Death('gpu', 'init', 'sampler', running=e.running, total=card.capacity)
        super().check(card, phase, step)

    def before(self, phase, step):
        stamp = self.out.stamp('%m-%d %H:%M:%S')
        if phase == 'engine_init':
            self.out.err(
                '(EngineCore_0 pid=682011) INFO %s [gpu_model_runner.py:2602] Starting to load model...'
                % stamp
            )
        elif step == 1:
            self.out.err('(APIServer pid=681845) INFO:     Application startup complete.')
        else:
            self.out.err(
                '(APIServer pid=681845) INFO %s [loggers.py:123] Engine 000: Avg prompt throughput: '
                '1211.3 tokens/s, Running: 201 reqs, GPU KV cache usage: 71.2%%' % stamp
            )

    def engine_end(self, death):
        if death.kind == 'pool':
            # vLLM preempts; the pool of a running server is never the end
            return
        vllm_death(self.out, death, self.torch, prefix='(EngineCore_0 pid=682011) ')
        if death.phase != 'generation':
            self.out.err(
                *text.traceback(
                    [
                        (
                            VLLM + 'engine/utils.py',
                            782,
                            'wait_for_engine_startup',
                            'raise RuntimeError(',
                        )
                    ],
                    'RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}',
                ),
                prefix='(APIServer pid=681845) '
            )


class Sglang(Server):
    name = 'sglang'
    script = 'launch_server.py'
    FLAGS = '''model-path:s tokenizer-path:s host:s port:i dtype:s trust-remote-code:t served-model-name:s
    mem-fraction-static:f max-running-requests:i max-total-tokens:i chunked-prefill-size:i
    max-prefill-tokens:i=16384 schedule-conservativeness:f=1.0 schedule-policy:s cuda-graph-max-bs:i
    cuda-graph-bs:i+ disable-cuda-graph:t kv-cache-dtype:s=auto{auto,fp8_e5m2,fp8_e4m3,bfloat16} page-size:i
    enable-memory-saver:t cpu-offload-gb:i=0 context-length:i random-seed:i log-level:s quantization:s
    load-format:s dp-size:i=1 ep-size:i=1 pp-size:i=1 attention-backend:s disable-radix-cache:t enable-metrics:t
    enable-torch-compile:t tool-call-parser:s reasoning-parser:s api-key:s nnodes:i node-rank:i
    dist-init-addr:s enable-dp-attention:t watchdog-timeout:f config:s'''

    def parse(self):
        parser = flags('launch_server.py', self.FLAGS, abbrev=True)
        parser.add_argument(
            '--tp', '--tp-size', '--tensor-parallel-size', type=int, default=1, dest='tp_size'
        )
        a = self.args = parser.parse_args(self.argv)
        self.settings = dict(vars(a))
        if a.mem_fraction_static is not None and not 0 < a.mem_fraction_static < 1:
            raise Refused(
                text.traceback(
                    [(SGL + 'server_args.py', 1210, '__post_init__', 'raise ValueError(')],
                    'ValueError: mem_fraction_static must be in (0, 1)',
                )
            )
        model = self.scenario.get('model', {})
        if model.get('heads', 28) % a.tp_size or a.tp_size > self.world:
            raise Refused(
                text.traceback(
                    [
                        (
                            SGL + 'layers/linear.py',
                            88,
                            '__init__',
                            'assert numerator % denominator == 0',
                        )
                    ],
                    'AssertionError: %d is not divisible by %d'
                    % (model.get('heads', 28), a.tp_size),
                )
            )

    def load(self):
        a = self.args
        chunk = a.chunked_prefill_size
        e = Engine(
            'sglang',
            a.mem_fraction_static or 0.88,
            tp=a.tp_size,
            prefill_tokens=(
                chunk if chunk and chunk > 0 else 8192 if chunk is None else a.max_prefill_tokens
            ),
            running=a.max_running_requests or 256,
            graph_batch=0 if a.disable_cuda_graph else a.cuda_graph_max_bs or 160,
            max_len=a.context_length or self.scenario.get('model', {}).get('seq', 32768),
            kv_bytes=1 if a.kv_cache_dtype.startswith('fp8') else 2,
            offload_bytes=a.cpu_offload_gb * GIB,
        )
        return self.server_load(e)

    def requests(self, card):
        from .play import Death

        e = card.load.engine
        per = self.hidden.get('request_tokens', 0)
        running = e.running
        tokens = card.pool() / (card.model.kv_token * e.kv_bytes / e.tp)
        if per and min(running, self.hidden.get('clients', 256)) * per > tokens:
            raise Death('kv_cache', 'generation', 'pool')

    def dump(self):
        self.out.say(
            '[%s] server_args=ServerArgs(%s)'
            % (self.out.stamp(), ', '.join('%s=%r' % kv for kv in sorted(self.settings.items())))
        )

    def before(self, phase, step):
        stamp = self.out.stamp()
        if phase == 'engine_init':
            self.out.say(
                '[%s TP0] Load weight begin. avail mem=%.2f GB'
                % (stamp, self.scenario.get('gpu_gib', 79.15) - 0.6)
            )
        elif step == 1:
            self.out.say('[%s] The server is fired up and ready to roll!' % stamp)
        else:
            self.out.say(
                '[%s TP0] Decode batch. #running-req: 101, #token: 119347, token usage: 0.25, cuda graph: '
                'True, gen throughput (token/s): 9109.26, #queue-req: 0, ' % stamp
            )

    def survived(self, failure):
        self.out.say(
            '[%s TP0] KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_token_ratio: '
            '0.9998 -> 1.0000' % self.out.stamp()
        )

    def engine_end(self, death):
        sglang_death(self.out, death, self.torch)
        self.out.err(
            '[%s] Received sigquit from a child process. It usually means the child failed.'
            % self.out.stamp()
        )
        if os.environ.get('SGLANG_KILLED', '1') == '1':
            self.killed()
