# SPDX-License-Identifier: Apache-2.0
"""LLaMA-Factory: llamafactory-cli train x.yaml key=value …, or --key value without a YAML."""

from . import text
from .hf import TRAINING_ARGS, HfTrainer
from .parsers import Refused, flags, load_yaml, yaml_value

OWN = '''
model_name_or_path:s adapter_name_or_path:s cache_dir:s template:s dataset:s dataset_dir:s eval_dataset:s stage:s=sft
finetuning_type:s=lora{lora,full,freeze,oft} lora_rank:i=8 lora_alpha:i lora_dropout:f lora_target:s cutoff_len:i=2048
max_samples:i preprocessing_num_workers:i packing:h neat_packing:h val_size:f mix_strategy:s streaming:h
overwrite_cache:h quantization_bit:i quantization_method:s double_quantization:h=true rope_scaling:s
flash_attn:s=auto{auto,disabled,sdpa,fa2,fa3} disable_gradient_checkpointing:h use_unsloth:h use_unsloth_gc:h enable_liger_kernel:h
pure_bf16:h upcast_layernorm:h train_from_scratch:h use_galore:h galore_target:s galore_rank:i use_apollo:h use_badam:h
pref_loss:s pref_beta:f ref_model:s reward_model:s ppo_score_norm:h plot_loss:h tokenized_path:s trust_remote_code:h
predict_with_generate:h compute_accuracy:h mask_history:h train_on_prompt:h ray_run_name:s ray_num_workers:i shift_attn:h
image_max_pixels:i video_max_pixels:i freeze_vision_tower:h export_dir:s infer_backend:s
'''


class LlamaFactory(HfTrainer):
    name = 'llamafactory'
    script = 'src/llamafactory/launcher.py'
    root = '/app/'

    def parse(self):
        parser = flags(
            'llamafactory-cli', TRAINING_ARGS.replace('@GC', 'false') + OWN, abbrev=True, both=True
        )
        dests = {a.dest for a in parser._actions}
        argv = self.argv
        if argv and argv[0].endswith(('.yaml', '.yml', '.json')):
            values = load_yaml(argv[0])
            for item in argv[1:]:
                key, eq, value = item.partition('=')
                values[key] = yaml_value(value) if eq else None
            unknown = [k for k in values if k not in dests]
            if unknown:
                raise Refused(
                    text.traceback(
                        [
                            (
                                '/app/src/llamafactory/hparams/parser.py',
                                105,
                                '_parse_args',
                                'return parser.parse_dict(args)',
                            ),
                            (
                                'transformers/hf_argparser.py',
                                388,
                                'parse_dict',
                                'raise ValueError(',
                            ),
                        ],
                        'ValueError: Some keys are not used by the HfArgumentParser: %s'
                        % sorted(unknown),
                    )
                )
            args = parser.parse_args([])
            for key, value in values.items():
                setattr(args, key, value)
        else:
            args, rest = parser.parse_known_args(argv)
            if rest:
                raise Refused(
                    ['Got unknown args, potentially deprecated arguments: %s' % rest]
                    + text.traceback(
                        [
                            (
                                '/app/src/llamafactory/hparams/parser.py',
                                112,
                                '_parse_args',
                                'raise ValueError(',
                            )
                        ],
                        'ValueError: Some specified arguments are not used by the HfArgumentParser: %s'
                        % rest,
                    )
                )
        v = self.values = vars(args)
        self.settings = dict(v)
        v['gradient_checkpointing'] = not v['disable_gradient_checkpointing']
        for key in ('per_device_train_batch_size', 'cutoff_len', 'gradient_accumulation_steps'):
            if not isinstance(v[key], int) or v[key] < 1:
                raise Refused("ValueError: %s must be a positive integer, got %r" % (key, v[key]))
        if v['quantization_bit'] and v['finetuning_type'] not in ('lora', 'oft'):
            self.fail('Quantization is only compatible with the LoRA or OFT method.')
        if v['deepspeed']:
            from .hf import zero

            stage = zero(v['deepspeed']).get('zero_optimization', {}).get('stage', 0)
            if v['pure_bf16'] and stage == 3:
                self.fail('Please use `bf16` instead of `pure_bf16` for DeepSpeed ZeRO-3.')
            if v['predict_with_generate'] and stage == 3:
                self.fail('`predict_with_generate` is incompatible with DeepSpeed ZeRO-3.')
            if v['use_galore'] or v['use_apollo']:
                self.fail('GaLore and APOLLO are incompatible with DeepSpeed yet.')

    def fail(self, message):
        raise Refused(
            text.traceback(
                [
                    (
                        '/app/src/llamafactory/hparams/parser.py',
                        260,
                        'get_train_args',
                        'raise ValueError(',
                    )
                ],
                'ValueError: ' + message,
            )
        )

    def load(self):
        lo = self.common(
            self.values,
            self.values['cutoff_len'],
            2 if self.values['stage'] in ('dpo', 'rm') else 1,
        )
        return lo

    def main_frames(self):
        return [
            (self.root + self.script, 185, '<module>', 'run_exp()'),
            (
                '/app/src/llamafactory/train/tuner.py',
                110,
                'run_exp',
                '_training_function(config={"args": args, "callbacks": callbacks})',
            ),
            (
                '/app/src/llamafactory/train/sft/workflow.py',
                132,
                'run_sft',
                'train_result = trainer.train(resume_from_checkpoint=training_args.resume_from_checkpoint)',
            ),
        ]
