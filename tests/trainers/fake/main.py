# SPDX-License-Identifier: Apache-2.0
"""Which program is which framework's, and starting it."""

import importlib
import os
import re

# (module or script as python is given it, file of the personality, class)
TABLE = [
    (r'relax\.entrypoints\.train|.*relax/entrypoints/train\.py', 'relax', 'Relax'),
    (r'verl\.trainer\.main_(ppo|generation)|.*/main_ppo\.py', 'verl', 'Verl'),
    (r'openrlhf\.cli\.train_\w+', 'openrlhf', 'OpenRlhf'),
    (r'.*run_(grpo|sft|dpo)\w*\.py', 'nemo_rl', 'NemoRl'),
    (r'.*pretrain_\w+\.py', 'megatron', 'Megatron'),
    (r'torchtitan\.train|.*torchtitan/train\.py', 'torchtitan', 'Torchtitan'),
    (r'axolotl\.cli\.train', 'axolotl', 'Axolotl'),
    (r'llamafactory\.launcher|.*llamafactory/launcher\.py', 'llamafactory', 'LlamaFactory'),
    (r'vllm\.entrypoints\.openai\.api_server', 'servers', 'Vllm'),
    (r'sglang\.launch_server', 'servers', 'Sglang'),
    (r'trl\.scripts\.\w+|.*(sft|grpo|dpo|rloo|kto)(_\w+)?\.py', 'trl', 'Trl'),
    (r'.*(examples/|gsm8k_)\S*(rl|grpo|ppo|sft)\.py|areal\.\S+', 'areal', 'Areal'),
    (r'.*ds_\w+\.py|.*train_ds\.py|.*deepspeed/\S+\.py', 'deepspeed', 'DeepSpeed'),
    (r'(.*/)?train_async\.py|(.*/)?train\.py', 'slime', 'Slime'),
    (r'.*\.py', 'pytorch', 'PyTorch'),
]


def find(program, framework=None):
    """The class for a program; a scenario that names its framework settles what is alike."""
    if framework:
        for _, module, cls in TABLE:
            if module.replace('_', '-') == framework or cls.lower() == framework:
                return load(module, cls)
    for pattern, module, cls in TABLE:
        if re.fullmatch(pattern, program):
            return load(module, cls)
    return None


def load(module, cls):
    return getattr(importlib.import_module('.' + module, __package__), cls)


def train(program, argv):
    """Plays the program; returns its exit code, or None when it is none of ours."""
    from .play import scenario

    if not os.environ.get('FAKE_TRAINER'):
        return None
    cls = find(program)
    if cls is None:
        return None
    wanted = scenario().get('framework')
    if cls.name in ('slime', 'pytorch') and wanted in (
        'slime',
        'pytorch',
        'deepspeed',
        'trl',
        'areal',
    ):
        cls = find(program, wanted)
    return cls(program, argv).run()
