# SPDX-License-Identifier: Apache-2.0
"""Megatron-LM: pretrain_gpt.py under torchrun or srun."""

import os

from . import megatron_args, text
from .parsers import Refused, flags
from .ranks import RankTrainer

FRAMES = {
    'init': [
        (
            'megatron/training/training.py',
            864,
            'pretrain',
            'model, optimizer, opt_param_scheduler = setup_model_and_optimizer(',
        ),
        (
            'megatron/training/training.py',
            1210,
            'setup_model_and_optimizer',
            'model = get_model(model_provider_func, model_type)',
        ),
        (
            'megatron/core/distributed/param_and_grad_buffer.py',
            612,
            '__init__',
            'self.grad_data = torch.zeros(',
        ),
    ],
    'step': [
        (
            'megatron/training/training.py',
            864,
            'pretrain',
            'iteration, num_floating_point_operations_so_far = train(',
        ),
        ('megatron/training/training.py', 2271, 'train', ') = train_step('),
        (
            'megatron/training/training.py',
            1394,
            'train_step',
            'losses_reduced = forward_backward_func(',
        ),
    ],
    'forward': [
        (
            'megatron/core/pipeline_parallel/schedules.py',
            641,
            'forward_backward_no_pipelining',
            'output_tensor, num_tokens = forward_step(',
        ),
        (
            'megatron/core/pipeline_parallel/schedules.py',
            423,
            'forward_step',
            'output_tensor, loss_func = forward_step_func(data_iterator, model)',
        ),
        ('pretrain_gpt.py', 206, 'forward_step', 'output_tensor = model('),
        ('megatron/core/models/gpt/gpt_model.py', 349, 'forward', 'hidden_states = self.decoder('),
        (
            'megatron/core/transformer/transformer_block.py',
            549,
            'forward',
            'hidden_states, context = layer(',
        ),
        (
            'megatron/core/transformer/mlp.py',
            125,
            'forward',
            'intermediate_parallel = bias_swiglu_impl(',
        ),
    ],
    'backward': [
        (
            'megatron/core/pipeline_parallel/schedules.py',
            655,
            'forward_backward_no_pipelining',
            'backward_step(input_tensor, output_tensor, output_tensor_grad, model_type, config)',
        ),
        (
            'megatron/core/pipeline_parallel/schedules.py',
            512,
            'backward_step',
            'custom_backward(output_tensor[0], output_tensor_grad[0])',
        ),
        (
            'megatron/core/pipeline_parallel/schedules.py',
            171,
            'custom_backward',
            'Variable._execution_engine.run_backward(',
        ),
    ],
    'optimizer': [
        (
            'megatron/core/optimizer/optimizer.py',
            1148,
            'step',
            'success = self.step_with_ready_grads()',
        ),
        (
            'megatron/core/optimizer/distrib_optimizer.py',
            2467,
            'step_with_ready_grads',
            'update_successful = super().step_with_ready_grads()',
        ),
        (
            'transformer_engine/pytorch/optimizers/fused_adam.py',
            472,
            'step',
            'self.initialize_state(p, store_param_remainders)',
        ),
        (
            'transformer_engine/pytorch/optimizers/fused_adam.py',
            351,
            'initialize_state',
            'self._initialize_state(',
        ),
    ],
    'checkpoint': [
        ('megatron/training/training.py', 864, 'pretrain', 'save_checkpoint('),
        (
            'megatron/training/checkpointing.py',
            511,
            'save_checkpoint',
            'state_dict = generate_state_dict(',
        ),
        (
            'megatron/training/checkpointing.py',
            790,
            'generate_state_dict',
            'optimizer_sd = optimizer.sharded_state_dict(state_dict, **(optim_sd_kwargs or {}))',
        ),
    ],
    'eval': [
        (
            'megatron/training/training.py',
            2950,
            'evaluate_and_print_results',
            'total_loss_dict, collected_non_loss_data, timelimit = evaluate(',
        ),
        ('megatron/training/training.py', 2810, 'evaluate', 'loss_dicts = forward_backward_func('),
        ('megatron/core/models/gpt/gpt_model.py', 349, 'forward', 'hidden_states = self.decoder('),
    ],
    'data': [
        ('megatron/training/training.py', 2271, 'train', ') = train_step('),
        ('pretrain_gpt.py', 181, 'forward_step', 'batch = get_batch(data_iterator)'),
    ],
}


class Megatron(RankTrainer):
    name = 'megatron'
    script = 'pretrain_gpt.py'
    root = '/opt/megatron-lm/'

    def parse(self):
        parser = flags(self.script, megatron_args.FLAGS)
        a = self.args = parser.parse_args(self.argv)
        self.settings = dict(vars(a))
        megatron_args.check(a, self.root, self.world)
        model = (
            a.tensor_model_parallel_size * a.pipeline_model_parallel_size * a.context_parallel_size
        )
        data = self.world // model
        path = self.root + 'megatron/core/num_microbatches_calculator.py'
        if a.micro_batch_size is None:
            raise Refused(
                text.traceback(
                    [
                        (
                            self.root + 'megatron/training/arguments.py',
                            560,
                            'validate_args',
                            'assert args.micro_batch_size is not None',
                        )
                    ],
                    'AssertionError',
                )
            )
        if (a.global_batch_size or a.micro_batch_size * data) % (a.micro_batch_size * data):
            raise Refused(
                text.traceback(
                    [(path, 372, '__init__', 'assert (')],
                    'AssertionError: global batch size (%d) is not divisible by micro batch size '
                    '(%d) times data parallel size (%d)'
                    % (a.global_batch_size, a.micro_batch_size, data),
                )
            )
        if a.use_megatron_fsdp and os.environ.get('CUDA_DEVICE_MAX_CONNECTIONS') == '1':
            raise Refused(
                text.traceback(
                    [
                        (
                            self.root + 'megatron/training/arguments.py',
                            900,
                            'validate_args',
                            'assert os.environ.get(',
                        )
                    ],
                    'AssertionError: FSDP always requires CUDA_DEVICE_MAX_CONNECTIONS value large '
                    'than one',
                )
            )

    def load(self):
        a = self.args
        lo = megatron_args.load(a, self.world, int(os.environ.get('NCCL_MAX_NCHANNELS', '32')))
        lo.tokens = a.micro_batch_size * (a.seq_length or 4096) // a.context_parallel_size
        lo.eval_tokens = lo.tokens
        lo.gather_save = self.hidden.get('gather_save', 0.0)
        return lo

    def steps(self):
        out = [('init', 1), ('data', 1)]
        if 'collective' in self.hidden.get('phases', []):
            out.append(('collective', 1))
        for step in (1, 2, 3):
            out += [('data', step), ('forward', step), ('backward', step), ('optimizer', step)]
        if 'eval' in self.hidden.get('phases', []):
            out.append(('eval', 3))
        return out + [('checkpoint', 3)]

    def dump(self):
        a = self.args
        self.out.say(
            'using world size: %d, data-parallel size: %d, context-parallel size: %d'
            % (
                self.world,
                self.world // a.tensor_model_parallel_size // a.pipeline_model_parallel_size,
                a.context_parallel_size,
            ),
            '------------------------ arguments ------------------------',
        )
        for key in sorted(self.settings):
            self.out.say('  %s %s %s' % (key, '.' * max(1, 48 - len(key)), getattr(a, key, None)))
        self.out.say('-------------------- end of arguments ---------------------')

    def before(self, phase, step):
        now = self.out.stamp()
        if phase == 'init':
            self.out.say(
                '[after megatron is initialized] datetime: %s ' % now, 'building GPT model ...'
            )
        elif phase == 'forward' and step == 1:
            self.out.say(
                '[after dataloaders are built] datetime: %s ' % now,
                'done with setup ...',
                'training ...',
                '[before the start of training step] datetime: %s ' % now,
            )
        elif phase == 'checkpoint':
            self.out.say(
                'saving checkpoint at iteration       3 to checkpoints in torch_dist format'
            )
        elif phase == 'eval':
            self.out.say('Evaluating on 2048 samples', 'Evaluating iter 1/100')

    def after(self, phase, step):
        if phase == 'init':
            self.out.say(
                '[after model, optimizer, and learning rate scheduler are built] datetime: %s '
                % self.out.stamp()
            )
        elif phase == 'optimizer':
            self.out.say(
                ' [%s] iteration %8d/  500000 | consumed samples: %12d | elapsed time per '
                'iteration (ms): 5473.8 | learning rate: 6.000000E-05 | global batch size: %5s | '
                'lm loss: 1.1%dE+01 | loss scale: 1.0 | grad norm: 3.421 | number of skipped '
                'iterations:   0 | number of nan iterations:   0 |'
                % (
                    self.out.stamp(),
                    step,
                    step * (self.args.global_batch_size or 64),
                    self.args.global_batch_size,
                    step,
                )
            )
        elif phase == 'checkpoint':
            self.out.say('  successfully saved checkpoint from iteration       3 to checkpoints')

    def main_frames(self):
        return [(self.root + self.script, 280, '<module>', 'pretrain(')]

    def where(self, phase):
        if phase == 'collective':
            return [
                (self.root + 'megatron/training/training.py', 2271, 'train', ') = train_step('),
                ('torch/distributed/c10d_logger.py', 81, 'wrapper', 'return func(*args, **kwargs)'),
                (
                    'torch/distributed/distributed_c10d.py',
                    2896,
                    'all_reduce',
                    'work = group.allreduce([tensor], opts)',
                ),
            ]
        items = FRAMES['step'] if phase in ('forward', 'backward', 'optimizer') else []
        out = []
        for path, line, func, code in items + FRAMES[phase]:
            local = path.startswith(('megatron/', 'pretrain'))
            out.append((self.root + path if local else path, line, func, code))
        return out

    def crash(self, death):
        if death.domain == 'gpu' and death.phase == 'collective':
            self.error(
                'collective',
                'torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/'
                'csrc/distributed/c10d/NCCLUtils.cpp:77, unhandled cuda error (run with NCCL_DEBUG='
                'INFO for details), NCCL version 2.27.3\nncclUnhandledCudaError: Call to CUDA '
                'function failed.\nLast error:\nFailed to CUDA calloc async %d bytes' % death.tried,
            )
            self.others()
            return 1
        return super().crash(death)
