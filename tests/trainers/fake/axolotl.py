# SPDX-License-Identifier: Apache-2.0
"""axolotl train x.yaml --key value: a YAML checked by pydantic, with overrides as flags."""

from . import text
from .hf import HfTrainer
from .parsers import Refused, load_yaml, put, yaml_value

KNOWN = '''base_model model_type tokenizer_type trust_remote_code load_in_8bit load_in_4bit strict datasets
dataset_prepared_path val_set_size output_dir sequence_len sample_packing eval_sample_packing pad_to_sequence_len
adapter lora_r lora_alpha lora_dropout lora_target_linear lora_target_modules wandb_project wandb_entity wandb_name
wandb_watch gradient_accumulation_steps micro_batch_size batch_size eval_batch_size num_epochs max_steps optimizer
lr_scheduler learning_rate train_on_inputs group_by_length bf16 fp16 tf32 gradient_checkpointing
gradient_checkpointing_kwargs activation_offloading early_stopping_patience resume_from_checkpoint logging_steps
flash_attention sdp_attention warmup_steps warmup_ratio evals_per_epoch saves_per_epoch save_steps eval_steps
weight_decay deepspeed fsdp fsdp_config fsdp_version special_tokens dataloader_num_workers dataloader_pin_memory
dataloader_prefetch_factor dataset_processes chat_template plugins liger_rope liger_rms_norm liger_glu_activation
liger_fused_linear_cross_entropy cut_cross_entropy torch_compile auto_find_batch_size seed save_total_limit
sequence_parallel_degree context_parallel_size tensor_parallel_size rl xformers_attention low_cpu_mem_usage tokens
eval_table_size load_best_model_at_end embeddings_skip_upcast unfrozen_parameters lora_mlp_kernel lora_qkv_kernel'''.split()

# plain booleans are click's --x / --no-x and take no value; sub-models have dotted options
SWITCHES = '''load_in_8bit load_in_4bit strict trust_remote_code sample_packing eval_sample_packing pad_to_sequence_len
lora_target_linear train_on_inputs group_by_length tf32 flash_attention sdp_attention xformers_attention low_cpu_mem_usage
dataloader_pin_memory auto_find_batch_size liger_rope liger_rms_norm liger_glu_activation cut_cross_entropy
liger_fused_linear_cross_entropy load_best_model_at_end embeddings_skip_upcast fsdp_config.offload_params
fsdp_config.activation_checkpointing fsdp_config.cpu_ram_efficient_loading fsdp_config.reshard_after_forward'''.split()


class Axolotl(HfTrainer):
    name = 'axolotl'
    script = 'src/axolotl/cli/train.py'
    root = '/workspace/axolotl/'

    def parse(self):
        argv = list(self.argv)
        path = argv.pop(0) if argv and not argv[0].startswith('--') else None
        if not path:
            raise Refused(
                ["Usage: axolotl train [OPTIONS] CONFIG", "Error: Missing argument 'CONFIG'."], 2
            )
        v = load_yaml(path)
        i = 0
        while i < len(argv):
            key, eq, value = argv[i].lstrip('-').partition('=')
            name = key.replace('-', '_')
            if not argv[i].startswith('--'):
                raise Refused(
                    [
                        'Usage: axolotl train [OPTIONS] CONFIG',
                        'Error: Got unexpected extra argument (%s)' % argv[i],
                    ],
                    2,
                )
            off = name.startswith('no_') and name[3:] in SWITCHES
            name = name[3:] if off else name
            if name in SWITCHES:
                if eq:
                    raise Refused(
                        [
                            'Usage: axolotl train [OPTIONS] CONFIG',
                            "Error: Option '--%s' does not take a value." % key,
                        ],
                        2,
                    )
                value = 'false' if off else 'true'
            elif name not in KNOWN:
                raise Refused(
                    [
                        'Usage: axolotl train [OPTIONS] CONFIG',
                        "Try 'axolotl train --help' for help.",
                        '',
                        'Error: No such option: --%s' % key,
                    ],
                    2,
                )
            elif not eq:
                if i + 1 >= len(argv):
                    raise Refused(
                        [
                            'Usage: axolotl train [OPTIONS] CONFIG',
                            "Error: Option '--%s' requires an argument." % key,
                        ],
                        2,
                    )
                value, i = argv[i + 1], i + 1
            if '.' in name:
                put(v, name, yaml_value(value))
                i += 1
                continue
            v[name] = yaml_value(value)
            i += 1
        self.settings = dict(v)
        have = [
            k for k in ('micro_batch_size', 'gradient_accumulation_steps', 'batch_size') if v.get(k)
        ]
        if len(have) < 2:
            self.fail(
                'At least two of micro_batch_size, gradient_accumulation_steps, batch_size must be set'
            )
        if (
            v.get('gradient_accumulation_steps')
            and v.get('batch_size')
            and not v.get('micro_batch_size')
        ):
            self.fail('please set only one of gradient_accumulation_steps or batch_size')
        for key in ('micro_batch_size', 'gradient_accumulation_steps', 'sequence_len'):
            if v.get(key) is not None and (not isinstance(v[key], int) or v[key] < 1):
                raise Refused(
                    [
                        'pydantic_core._pydantic_core.ValidationError: 1 validation error for AxolotlInputConfig',
                        key,
                        '  Input should be a valid integer [type=int_type, input_value=%r]'
                        % v[key],
                    ]
                )
        if v.get('fsdp_config') and v.get('deepspeed'):
            self.fail('deepspeed and fsdp cannot be used together')
        gc = v.get('gradient_checkpointing')
        if gc not in (None, True, False, 'offload', 'offload_disk'):
            self.fail('Input should be a valid boolean or one of offload, offload_disk')
        fs = v.get('fsdp_config') or {}
        if fs.get('activation_checkpointing') and gc:
            self.fail(
                "FSDP activation_checkpointing and gradient_checkpointing can't be set together"
            )
        if (
            v.get('optimizer') in ('adamw_bnb_8bit', 'adamw_8bit')
            and v.get('deepspeed')
            and 'cpuoffload' in str(v['deepspeed'])
        ):
            self.fail('8bit optimizers are not compatible with DeepSpeed CPU offload')
        self.values = dict(
            v,
            per_device_train_batch_size=v.get('micro_batch_size')
            or v['batch_size'] // max(1, v.get('gradient_accumulation_steps', 1)) // self.world
            or 1,
            gradient_accumulation_steps=v.get('gradient_accumulation_steps', 1),
            optim=v.get('optimizer'),
            per_device_eval_batch_size=v.get('eval_batch_size') or v.get('micro_batch_size') or 1,
            gradient_checkpointing=bool(gc),
            bf16=v.get('bf16') in (True, 'auto', 'true'),
        )

    def fail(self, message):
        raise Refused(
            text.traceback(
                [
                    (
                        '/workspace/axolotl/src/axolotl/utils/config/__init__.py',
                        251,
                        'validate_config',
                        'AxolotlInputConfig(',
                    )
                ],
                'pydantic_core._pydantic_core.ValidationError: 1 validation error for AxolotlInputConfig\n  Value error, '
                + message,
            )
        )

    def load(self):
        v = self.values
        if v.get('sample_packing') or v.get('pad_to_sequence_len'):
            self.scenario.setdefault('model', {})['seq'] = v.get('sequence_len') or 2048
        lo = self.common(v, v.get('sequence_len') or 2048)
        lo.act_offload = bool(
            v.get('activation_offloading')
            or v.get('gradient_checkpointing') == 'offload'
            or self.settings.get('gradient_checkpointing') == 'offload'
        )
        lo.fused_loss = bool(
            v.get('liger_fused_linear_cross_entropy') or v.get('cut_cross_entropy')
        )
        fs = v.get('fsdp_config')
        if fs or v.get('fsdp'):
            lo.shard = 'z3'
            fs = fs or {}
            lo.param_offload = bool(fs.get('offload_params') or fs.get('fsdp_offload_params'))
            if fs.get('activation_checkpointing'):
                lo.recompute = 'full'
        return lo

    def before(self, phase, step):
        if phase == 'init':
            self.out.err(
                '[%s] [INFO] [axolotl.train.train:112] [PID:1824] [RANK:0] loading model'
                % self.out.stamp('%Y-%m-%d %H:%M:%S,113')
            )
        elif phase == 'data' and step == 1:
            self.out.err(
                '[%s] [INFO] [axolotl.train.execute_training:201] [PID:1824] [RANK:0] Starting trainer...'
                % self.out.stamp('%Y-%m-%d %H:%M:%S,113')
            )
        else:
            super().before(phase, step)

    def main_frames(self):
        return [
            (self.root + self.script, 121, '<module>', 'fire.Fire(do_cli)'),
            (
                '/workspace/axolotl/src/axolotl/train.py',
                212,
                'train',
                'execute_training(cfg, trainer, resume_from_checkpoint)',
            ),
        ]

    def finish(self):
        self.out.err(
            '[%s] [INFO] [axolotl.train.train:260] Training completed! Saving trained model to ./outputs/out.'
            % self.out.stamp('%Y-%m-%d %H:%M:%S,113')
        )
