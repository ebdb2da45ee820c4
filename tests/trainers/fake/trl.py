# SPDX-License-Identifier: Apache-2.0
"""TRL scripts (`trl sft`, accelerate launch sft.py): TrlParser over HfArgumentParser."""

from . import text
from .hf import LOOP, TRAINING_ARGS, HfTrainer
from .memory import Engine
from .parsers import Refused, flags, load_yaml

COMMON = '''
model_name_or_path:s model_revision:s dtype:s torch_dtype:s trust_remote_code:h attn_implementation:s use_peft:h
lora_r:i=16 lora_alpha:i lora_dropout:f lora_target_modules:s+ load_in_8bit:h load_in_4bit:h bnb_4bit_quant_type:s
use_bnb_nested_quant:h dataset_name:s dataset_config:s dataset_train_split:s dataset_test_split:s dataset_streaming:h
gradient_checkpointing_use_reentrant:h dataset_num_proc:i
'''
EXTRA = {
    'sft': '''max_length:i=1024 packing:h packing_strategy:s padding_free:h eval_packing:h assistant_only_loss:h
        completion_only_loss:h activation_offloading:h chat_template_path:s dataset_text_field:s loss_type:s eos_token:s
        pad_to_multiple_of:i shuffle_dataset:h''',
    'grpo': '''max_prompt_length:i max_completion_length:i=512 num_generations:i=8 generation_batch_size:i
        steps_per_generation:i use_vllm:h vllm_mode:s=colocate{colocate,server} vllm_gpu_memory_utilization:f=0.3
        vllm_max_model_length:i vllm_enable_sleep_mode:h vllm_tensor_parallel_size:i=1 vllm_server_host:s
        vllm_server_port:i beta:f=0.0 num_iterations:i epsilon:f epsilon_high:f loss_type:s temperature:f top_p:f top_k:i
        reward_model_name_or_path:s reward_funcs:s+ scale_rewards:s mask_truncated_completions:h sync_ref_model:h
        log_completions:h disable_dropout:h use_transformers_paged:h shuffle_dataset:h''',
    'dpo': '''max_length:i=1024 max_prompt_length:i max_completion_length:i beta:f loss_type:s+ precompute_ref_log_probs:h
        padding_free:h activation_offloading:h label_smoothing:f reference_free:h precompute_ref_batch_size:i''',
}
GRPO = 'trl/trainer/grpo_trainer.py'
STEP = LOOP + [
    ('transformers/trainer.py', 4014, 'training_step', 'inputs = self._prepare_inputs(inputs)')
]
GEN = STEP + [
    (
        GRPO,
        1572,
        '_prepare_inputs',
        'generation_batch = self._generate_and_score_completions(generation_batch)',
    )
]


class Trl(HfTrainer):
    name = 'trl'
    script = 'trl/scripts/sft.py'
    root = '/opt/conda/lib/python3.11/site-packages/'

    def parse(self):
        kind = next((k for k in ('grpo', 'dpo') if k in self.program), 'sft')
        self.kind = kind
        self.script = 'trl/scripts/%s.py' % kind
        argv = list(self.argv)
        config = None
        for i, a in enumerate(argv):
            if a == '--config' and i + 1 < len(argv):
                config, argv = argv[i + 1], argv[:i] + argv[i + 2 :]
                break
            if a.startswith('--config='):
                config, argv = a[9:], argv[:i] + argv[i + 1 :]
                break
        spec = TRAINING_ARGS.replace('@GC', 'true') + COMMON + EXTRA[kind]
        parser = flags(kind + '.py', spec, abbrev=True, both=True)
        if config:
            import os

            cfg = load_yaml(config)
            for key, value in (cfg.pop('env', None) or {}).items():
                os.environ[key] = str(value)
            dests = {a.dest for a in parser._actions}
            unknown = [k for k in cfg if k not in dests]
            if unknown:
                raise Refused(
                    text.traceback(
                        [
                            (
                                'trl/scripts/utils.py',
                                412,
                                'parse_args_and_config',
                                'raise ValueError(',
                            )
                        ],
                        'ValueError: Unknown arguments from config file: %s' % unknown,
                    )
                )
            typed = {}
            for key, value in cfg.items():
                typed[key] = value
            parser.set_defaults(**typed)
        args, rest = parser.parse_known_args(argv)
        if rest:
            raise Refused(
                text.traceback(
                    [
                        (
                            'transformers/hf_argparser.py',
                            358,
                            'parse_args_into_dataclasses',
                            'raise ValueError(',
                        )
                    ],
                    'ValueError: Some specified arguments are not used by the HfArgumentParser: %s'
                    % rest,
                )
            )
        self.values = vars(args)
        self.settings = dict(self.values)
        self.check_values()

    def check_values(self):
        v = self.values
        if v['per_device_train_batch_size'] < 1:
            raise Refused('ValueError: per_device_train_batch_size must be positive')
        if v['dataloader_prefetch_factor'] is not None and not v['dataloader_num_workers']:
            raise Refused(
                'ValueError: --dataloader_prefetch_factor can only be set when data is loaded in a different process, i.e. '
                'when --dataloader_num_workers > 0.'
            )
        if self.kind == 'grpo':
            per = v['per_device_train_batch_size'] * self.world
            if v['auto_find_batch_size']:
                raise Refused('ValueError: auto_find_batch_size is not supported with GRPO')
            if v['generation_batch_size'] and v['steps_per_generation']:
                raise Refused(
                    "ValueError: 'generation_batch_size' and 'steps_per_generation' can not be both configured at the same time"
                )
            steps = v['steps_per_generation'] or v['gradient_accumulation_steps']
            whole = v['generation_batch_size'] or per * steps
            if whole % per:
                raise Refused(
                    'ValueError: generation_batch_size (%d) must be divisible by the global batch size (%d).'
                    % (whole, per)
                )
            if whole % v['num_generations']:
                raise Refused(
                    'ValueError: generation_batch_size (%d) must be divisible by num_generations (%d).'
                    % (whole, v['num_generations'])
                )

    def load(self):
        v = self.values
        kind = self.kind
        length = v.get('max_length') or self.scenario.get('model', {}).get('seq', 4096)
        if kind == 'grpo':
            length = (v['max_prompt_length'] or 512) + v['max_completion_length']
            self.scenario.setdefault('model', {})['seq'] = length
        if kind == 'sft' and v['packing']:
            self.scenario.setdefault('model', {})['seq'] = length
        lo = self.common(v, length, 2 if kind == 'dpo' else 1)
        lo.act_offload = bool(v.get('activation_offloading'))
        self.apply_accelerate(lo)
        if kind == 'grpo':
            lo.lp_tokens = lo.ref_tokens = lo.tokens
            if v['use_vllm'] and v['vllm_mode'] == 'colocate':
                lo.train_sleeps = False
                lo.sync_buffer = 64 << 20
                lo.engine = Engine(
                    'vllm',
                    v['vllm_gpu_memory_utilization'],
                    tp=v['vllm_tensor_parallel_size'],
                    same_process=True,
                    sleeps=bool(v['vllm_enable_sleep_mode']),
                    prefill_tokens=4096,
                    running=min(
                        256,
                        self.values['per_device_train_batch_size']
                        * v['gradient_accumulation_steps'],
                    ),
                    max_len=v['vllm_max_model_length'] or length,
                    graph_batch=64,
                )
        return lo

    def engine_start(self, card):
        # inside the trainer's process: the trainer's weights are there already
        keep, self.hidden['neighbour_gib'] = self.hidden.get('neighbour_gib', 0), 0
        sleeps, card.load.train_sleeps = card.load.train_sleeps, True
        try:
            super().engine_start(card)
        finally:
            self.hidden['neighbour_gib'], card.load.train_sleeps = keep, sleeps

    def steps(self):
        if self.kind != 'grpo':
            return super().steps()
        v = self.values
        engine = v['use_vllm'] and v['vllm_mode'] == 'colocate'
        out = [('init', 1)] + ([('engine_init', 1)] if engine else [])
        for step in (1, 2, 3):
            out += [('data', step)]
            if engine:
                out += [('weight_sync', step), ('generation', step)]
            if v['beta']:
                out.append(('ref_log_probs', step))
            out += [('log_probs', step), ('forward', step), ('backward', step), ('optimizer', step)]
        return out + [('checkpoint', 3)]

    def where(self, phase):
        if phase in ('log_probs', 'ref_log_probs'):
            return GEN + [
                (
                    GRPO,
                    2350,
                    '_generate_and_score_completions',
                    'old_per_token_logps, _ = self._get_per_token_logps_and_entropies(',
                ),
                (
                    GRPO,
                    1120,
                    '_get_per_token_logps_and_entropies',
                    'logits = model(**model_inputs).logits',
                ),
            ]
        if phase == 'weight_sync':
            return GEN + [
                (GRPO, 1801, '_generate_single_turn', 'self.vllm_generation.sync_weights()'),
                (
                    'trl/generation/vllm_generation.py',
                    520,
                    'sync_weights',
                    'llm_model.load_weights([(name, param.data)])',
                ),
            ]
        if phase == 'generation':
            return GEN + [
                (GRPO, 2291, '_generate_and_score_completions', 'self._generate(prompts)'),
                (GRPO, 1833, '_generate_single_turn', 'outputs = self.vllm_generation.generate('),
                (
                    'vllm/entrypoints/llm.py',
                    1522,
                    '_run_engine',
                    'step_outputs = self.llm_engine.step()',
                ),
                (
                    'vllm/v1/worker/gpu_model_runner.py',
                    2260,
                    'execute_model',
                    'model_output = self.model(',
                ),
            ]
        if phase == 'forward' and self.kind == 'grpo':
            return LOOP + [
                (
                    'transformers/trainer.py',
                    4020,
                    'training_step',
                    'loss = self.compute_loss(model, inputs, num_items_in_batch=num_items_in_batch)',
                ),
                (
                    GRPO,
                    2501,
                    '_compute_loss',
                    'per_token_logps, entropies = self._get_per_token_logps_and_entropies(',
                ),
            ]
        return super().where(phase)

    def crash(self, death):
        if death.domain == 'gpu' and death.kind == 'wake':
            self.error(
                'weight_sync',
                'RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62',
            )
            self.others()
            return 1
        if death.domain == 'kv_cache' or death.kind in ('startup', 'load', 'capture'):
            from .servers import vllm_frames, vllm_message

            self.where = lambda phase: [
                (GRPO, 512, '__init__', 'self.vllm_generation = VLLMGeneration('),
                ('trl/generation/vllm_generation.py', 301, '__init__', 'self.llm = LLM('),
            ] + vllm_frames(death.kind)
            self.error('engine_init', vllm_message(death, self.torch))
            self.others()
            return 1
        return super().crash(death)
