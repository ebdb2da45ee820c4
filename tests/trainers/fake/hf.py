# SPDX-License-Identifier: Apache-2.0
"""What the trainers on top of transformers have in common: the meaning of its arguments, frames and logs."""

import json
import os

from . import text
from .memory import Load
from .parsers import Refused
from .ranks import RankTrainer

TRAINING_ARGS = '''
output_dir:s overwrite_output_dir:h do_train:h do_eval:h do_predict:h eval_strategy:s prediction_loss_only:h
per_device_train_batch_size:i=8 per_device_eval_batch_size:i=8 gradient_accumulation_steps:i=1
eval_accumulation_steps:i eval_delay:f torch_empty_cache_steps:i learning_rate:f weight_decay:f adam_beta1:f
adam_beta2:f adam_epsilon:f max_grad_norm:f num_train_epochs:f max_steps:i=-1 lr_scheduler_type:s
lr_scheduler_kwargs:s warmup_ratio:f warmup_steps:f log_level:s logging_dir:s logging_strategy:s
logging_first_step:h logging_steps:f save_strategy:s save_steps:f save_total_limit:i save_only_model:h seed:i
data_seed:i bf16:h fp16:h bf16_full_eval:h tf32:h local_rank:i ddp_backend:s debug:s dataloader_drop_last:h eval_steps:f
dataloader_num_workers:i=0 dataloader_prefetch_factor:i dataloader_pin_memory:h=true
dataloader_persistent_workers:h run_name:s disable_tqdm:h remove_unused_columns:h=true label_names:s*
load_best_model_at_end:h metric_for_best_model:s fsdp:s fsdp_config:s accelerator_config:s deepspeed:s
label_smoothing_factor:f optim:s=adamw_torch optim_args:s optim_target_modules:s group_by_length:h report_to:s*
ddp_find_unused_parameters:h ddp_bucket_cap_mb:i ddp_timeout:i push_to_hub:h resume_from_checkpoint:s hub_model_id:s
gradient_checkpointing:h=@GC gradient_checkpointing_kwargs:s auto_find_batch_size:h full_determinism:h
torch_compile:h use_liger_kernel:h neftune_noise_alpha:f batch_eval_metrics:h eval_on_start:h
average_tokens_across_devices:h=true include_num_input_tokens_seen:s dispatch_batches:h
'''
OPT_BYTES = {
    'adamw_8bit': 2,
    'adamw_bnb_8bit': 2,
    'paged_adamw_8bit': 0.3,
    'paged_adamw_32bit': 0.5,
    'adafactor': 0.2,
    'sgd': 0,
    'lion_8bit': 1,
    'adamw_torch_8bit': 2,
    'galore_adamw': 2,
    'apollo_adamw': 2,
}
SITE = 'transformers/trainer.py'
LOOP = [
    (SITE, 2325, 'train', 'return inner_training_loop('),
    (
        SITE,
        2674,
        '_inner_training_loop',
        'tr_loss_step = self.training_step(model, inputs, num_items_in_batch)',
    ),
]
WHERE = {
    'init': [
        (
            'transformers/modeling_utils.py',
            4574,
            'from_pretrained',
            ') = cls._load_pretrained_model(',
        ),
        (
            'transformers/modeling_utils.py',
            880,
            '_load_state_dict_into_meta_model',
            'param = param.to(device)',
        ),
    ],
    'forward': LOOP
    + [
        (
            SITE,
            4020,
            'training_step',
            'loss = self.compute_loss(model, inputs, num_items_in_batch=num_items_in_batch)',
        ),
        (SITE, 4110, 'compute_loss', 'outputs = model(**inputs)'),
    ]
    + text.MODULE_CALL
    + [('transformers/models/qwen2/modeling_qwen2.py', 449, 'forward', 'outputs = self.model(')],
    'backward': LOOP
    + [
        (SITE, 4058, 'training_step', 'self.accelerator.backward(loss, **kwargs)'),
        ('accelerate/accelerator.py', 2553, 'backward', 'loss.backward(**kwargs)'),
    ]
    + text.AUTOGRAD,
    'optimizer': [
        LOOP[0],
        (SITE, 2731, '_inner_training_loop', 'self.optimizer.step()'),
        ('accelerate/optimizer.py', 179, 'step', 'self.optimizer.step(closure)'),
        ('torch/optim/adamw.py', 220, 'step', 'has_complex = self._init_group('),
        ('torch/optim/adam.py', 196, '_init_group', 'state["exp_avg_sq"] = torch.zeros_like('),
    ],
    'checkpoint': [
        LOOP[0],
        (SITE, 2790, '_inner_training_loop', 'self._maybe_log_save_evaluate('),
        (SITE, 3221, '_maybe_log_save_evaluate', 'self._save_checkpoint(model, trial)'),
        (SITE, 3330, '_save_checkpoint', 'self.save_model(output_dir, _internal_call=True)'),
    ],
    'eval': [
        LOOP[0],
        (SITE, 2790, '_inner_training_loop', 'self._maybe_log_save_evaluate('),
        (SITE, 4380, 'evaluate', 'output = eval_loop('),
        (SITE, 4620, 'evaluation_loop', 'all_preds.add(logits)'),
        (
            'transformers/trainer_pt_utils.py',
            312,
            'add',
            'self.tensors = nested_concat(self.tensors, tensors, padding_index=self.padding_index)',
        ),
    ],
}
DS_WHERE = {
    'backward': [
        ('accelerate/utils/deepspeed.py', 266, 'backward', 'self.engine.backward(loss, **kwargs)'),
        (
            'deepspeed/runtime/engine.py',
            2187,
            'backward',
            'self._do_optimizer_backward(loss, retain_graph)',
        ),
        (
            'deepspeed/runtime/zero/stage3.py',
            2330,
            'backward',
            'self.loss_scaler.backward(loss.float(), retain_graph=retain_graph)',
        ),
    ]
    + text.AUTOGRAD,
    'optimizer': [
        ('deepspeed/runtime/engine.py', 2335, 'step', 'self._take_model_step(lr_kwargs)'),
        ('deepspeed/runtime/zero/stage3.py', 2201, 'step', 'self._optimizer_step(sub_group_id)'),
        (
            'deepspeed/ops/adam/fused_adam.py',
            101,
            'step',
            "state['exp_avg_sq'] = torch.zeros_like(p.data)",
        ),
    ],
    'checkpoint': [
        (
            'deepspeed/runtime/engine.py',
            3354,
            'save_16bit_model',
            'state_dict = self._zero3_consolidated_16bit_state_dict()',
        ),
        (
            'deepspeed/runtime/engine.py',
            3269,
            '_zero3_consolidated_16bit_state_dict',
            'with deepspeed.zero.GatheredParameters(list(module.parameters(recurse=False)), modifier_rank=0):',
        ),
        (
            'deepspeed/runtime/zero/partition_parameters.py',
            1553,
            '__enter__',
            'self.params[0].all_gather(param_list=self.params)',
        ),
    ],
}


def zero(path_or_dict):
    """A DeepSpeed configuration; duplicate keys raise, as DeepSpeed's own loader does."""
    if isinstance(path_or_dict, dict):
        return path_or_dict

    def pairs(items):
        d = dict(items)
        if len(d) != len(items):
            keys = [k for k, _ in items]
            raise Refused(
                'ValueError: Keys %s are duplicated in DeepSpeed config'
                % sorted({k for k in keys if keys.count(k) > 1})
            )
        return d

    try:
        with open(path_or_dict) as f:
            return json.load(f, object_pairs_hook=pairs)
    except OSError:
        raise Refused(
            "ValueError: Expected a string path to an existing deepspeed config, or a dictionary, or a base64 "
            "encoded string. Received: %s" % path_or_dict
        ) from None
    except ValueError as e:
        raise Refused('json.decoder.JSONDecodeError: %s' % e) from None


def apply_zero(lo, ds, scenario):
    """Stage, offloads and gathering of a DeepSpeed configuration."""
    z = ds.get('zero_optimization', {})
    stage = z.get('stage', 0)
    if z.get('offload_param', {}).get('device', 'none') != 'none' and stage != 3:
        raise Refused(
            'deepspeed.runtime.config_utils.DeepSpeedConfigError: Parameter offload is only supported for ZeRO stage 3'
        )
    lo.shard = {0: 'ddp', 1: 'z1', 2: 'z2', 3: 'z3'}[stage]
    lo.grad_bytes, lo.opt_bytes = 2, 12
    if z.get('offload_optimizer', {}).get('device', 'none') in ('cpu', 'nvme'):
        lo.opt_offload = 1.0
    if z.get('offload_param', {}).get('device', 'none') in ('cpu', 'nvme'):
        lo.param_offload = True
    buckets = (
        2.0
        * (
            float(
                z.get('reduce_bucket_size', 5e8) if z.get('reduce_bucket_size') != 'auto' else 2e7
            )
            + float(
                z.get('allgather_bucket_size', 5e8)
                if z.get('allgather_bucket_size') != 'auto'
                else 2e7
            )
        )
        if stage in (1, 2)
        else 0
    )
    live = z.get('stage3_max_live_parameters', 1e9)
    lo.buckets = (
        buckets
        if stage in (1, 2)
        else 2 * min(float(1e9 if live == 'auto' else live), 3e9) if stage == 3 else 0
    )
    if stage == 3 and z.get('stage3_gather_16bit_weights_on_model_save'):
        lo.gather_save = scenario.get('hidden', {}).get('gather_share', 0.0)
    return stage


class HfTrainer(RankTrainer):
    default_checkpointing = 'false'

    def batch(self, a, length, sequences=1):
        """Tokens of one micro batch; the longest sample bounds a padded batch."""
        seq = self.scenario.get('model', {}).get('seq', 4096)
        return a['per_device_train_batch_size'] * min(length or seq, max(seq, 1)) * sequences

    def common(self, a, length, sequences=1):
        lora = (
            a.get('use_peft')
            or a.get('finetuning_type') == 'lora'
            or a.get('adapter') in ('lora', 'qlora')
        )
        weight = 2 if a.get('bf16') or lora or a.get('dtype') in ('bfloat16', 'bf16') else 4
        if a.get('load_in_4bit') or a.get('quantization_bit') == 4:
            weight = 0.55
        elif a.get('load_in_8bit') or a.get('quantization_bit') == 8:
            weight = 1.1
        opt = OPT_BYTES.get(a.get('optim') or 'adamw_torch', 8)
        if weight == 2 and not lora and not a.get('deepspeed') and not a.get('pure_bf16'):
            weight = 4  # fp32 masters under autocast
        lo = Load(
            shard='ddp',
            weight_bytes=weight,
            grad_bytes=2 if lora else min(weight, 4),
            opt_bytes=opt,
            trainable=0.012 if lora else 1.0,
            recompute='full' if a.get('gradient_checkpointing') else 'none',
            fused_loss=bool(a.get('use_liger_kernel') or a.get('enable_liger_kernel')),
            workers=a.get('dataloader_num_workers') or 0,
            prefetch=a.get('dataloader_prefetch_factor') or 2,
        )
        lo.tokens = self.batch(a, length, sequences)
        lo.eval_tokens = a.get('per_device_eval_batch_size', 8) * min(
            length or 4096, self.scenario.get('model', {}).get('seq', 4096)
        )
        keep = a.get('eval_accumulation_steps')
        lo.eval_keep = lo.eval_tokens * min(keep or 8, 8) if self.hidden.get('eval_logits') else 0
        self.stage = None
        if a.get('deepspeed'):
            self.stage = apply_zero(lo, zero(a['deepspeed']), self.scenario)
        if a.get('fsdp'):
            lo.shard = 'z3'
            lo.param_offload = 'offload' in str(a['fsdp'])
        return lo

    def accelerate_config(self):
        """What `accelerate launch --config_file` says about DeepSpeed or FSDP."""
        path = os.environ.get('FAKE_ACCELERATE_CONFIG')
        if not path:
            return {}
        from .parsers import load_yaml

        return load_yaml(path)

    def apply_accelerate(self, lo):
        cfg = self.accelerate_config()
        ds = cfg.get('deepspeed_config') or {}
        fs = cfg.get('fsdp_config') or {}
        if ds:
            if ds.get('deepspeed_config_file'):
                self.stage = apply_zero(lo, zero(ds['deepspeed_config_file']), self.scenario)
                return
            z = {'stage': ds.get('zero_stage', 2)}
            for key, name in (
                ('offload_optimizer_device', 'offload_optimizer'),
                ('offload_param_device', 'offload_param'),
            ):
                if ds.get(key, 'none') != 'none':
                    z[name] = {'device': ds[key]}
            z.update(reduce_bucket_size='auto', allgather_bucket_size='auto')
            lo.weight_bytes = min(lo.weight_bytes, 2)
            self.stage = apply_zero(lo, {'zero_optimization': z}, self.scenario)
        elif fs:
            lo.shard = 'z3'
            lo.param_offload = bool(fs.get('fsdp_offload_params'))
            if fs.get('fsdp_activation_checkpointing'):
                if lo.recompute == 'full' and self.values.get('gradient_checkpointing'):
                    raise Refused(
                        'ValueError: The activation_checkpointing in FSDP config and the gradient_checkpointing in '
                        'training arg can\'t be set to True simultaneously.'
                    )
                lo.recompute = 'full'

    def steps(self):
        out = [('init', 1)]
        for step in (1, 2, 3):
            out += [('data', step), ('forward', step), ('backward', step), ('optimizer', step)]
        if 'eval' in self.hidden.get('phases', []):
            out.append(('eval', 3))
        return out + [('checkpoint', 3)]

    def before(self, phase, step):
        if phase == 'init':
            self.out.err('Loading checkpoint shards: 100%|##########| 4/4 [00:07<00:00,  1.82s/it]')
        elif phase == 'data' and step == 1:
            v = self.values
            self.out.err(
                '***** Running training *****',
                '  Num examples = 51,200',
                '  Num Epochs = 1',
                '  Instantaneous batch size per device = %s' % v.get('per_device_train_batch_size'),
                '  Gradient Accumulation steps = %s' % v.get('gradient_accumulation_steps'),
            )
        elif phase == 'checkpoint':
            self.out.err('Saving model checkpoint to out/checkpoint-3')
        elif phase == 'eval':
            self.out.err('', '***** Running Evaluation *****', '  Num examples = 512')

    def after(self, phase, step):
        if phase == 'optimizer':
            self.out.say(
                "{'loss': 0.3%d12, 'grad_norm': 1.246, 'learning_rate': 1.6740e-05, 'epoch': 0.0%d}"
                % (step, step)
            )

    def where(self, phase):
        phase = {'ref_log_probs': 'log_probs', 'data': 'forward'}.get(phase, phase)
        if self.stage is not None and phase in DS_WHERE:
            base = WHERE[phase][: 2 if phase == 'optimizer' else 3]
            return base + DS_WHERE[phase]
        return WHERE[phase]

    def main_frames(self):
        return [
            (self.root + self.script, 98, '<module>', 'main()'),
            (self.root + self.script, 90, 'main', 'trainer.train()'),
        ]

    def survived(self, failure):
        self.out.err(
            'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of '
            '79.15 GiB of which 1.02 GiB is free.',
            'Decreasing batch size to: 4.',
        )

    def finish(self):
        self.out.say(
            "{'train_runtime': 512.3, 'train_samples_per_second': 9.8, 'train_loss': 0.3412, 'epoch': 1.0}",
            'Training completed. Do not forget to share your model on huggingface.co/models =)',
        )
