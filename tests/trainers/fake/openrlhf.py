# SPDX-License-Identifier: Apache-2.0
"""OpenRLHF: openrlhf.cli.train_*; flags as renamed at 0.10.2, or as before with "old" in the scenario."""

from . import text
from .memory import Engine, Load
from .parsers import Refused, flags
from .ray import RayTrainer

COMMON = '''
ckpt.output_dir:s ckpt.path:s ckpt.save_steps:i=-1 ckpt.save_hf:t ckpt.disable_ds:t ckpt.max_num:i ckpt.load_enable:t
logger.logging_steps:i eval.steps:i=-1 eval.dataset:s eval.split:s ds.use_universal_ckpt:t
train.micro_batch_size:i=@M train.batch_size:i=128 train.seed:i train.full_determinism_enable:t train.max_epochs:i
local_rank:i ds.zero_stage:i=2 ds.param_dtype:s{bf16,fp16} ds.zpg:i=1 ds.adam_offload:t ds.attn_implementation:s
ds.experts_implementation:s ds.use_liger_kernel:t ds.grad_accum_dtype:s ds.overlap_comm:t ds.deepcompile:t
ds.tensor_parallel_size:i=1 ds.ring_attn_size:i=1 ds.ring_attn_head_stride:i ds.load_in_4bit:t ds.lora.rank:i=0
ds.lora.alpha:i ds.lora.target_modules:s* ds.lora.dropout:f ds.packing_samples:t data.disable_fast_tokenizer:t
data.dataloader_num_workers:i=0 data.max_len:i=2048 data.max_samples:i data.input_key:s data.input_template:s
data.apply_chat_template:t data.dataset:s data.dataset_probs:s data.dataset_split:s data.tokenizer_chat_template:s
logger.wandb.key:s logger.wandb.org:s logger.wandb.group:s logger.wandb.project:s logger.wandb.run_name:s
logger.tensorboard_dir:s use_ms:t optim:s adam.lr:f adam.betas:f2 adam.eps:f adam.weight_decay:f muon.lr:f
lr_scheduler:s lr_warmup_ratio:f min_lr_ratio:f max_norm:f
'''
MODEL = '''model.gradient_checkpointing_enable:t model.gradient_checkpointing_reentrant:t model.model_name_or_path:s
model.aux_loss_coef:f model.beta:f model.ipo_enable:t model.label_smoothing:f model.nll_loss_coef:f
model.pretrain_mode_enable:t ref.model_name_or_path:s ref.offload:t data.multiturn:t data.output_key:s data.prompt_key:s
data.chosen_key:s data.rejected_key:s'''
PPO = '''
ref.num_nodes:i=1 ref.num_gpus_per_node:i=8 reward.num_nodes:i=1 reward.num_gpus_per_node:i=8 actor.num_nodes:i=1
actor.num_gpus_per_node:i=8 critic.num_nodes:i=1 critic.num_gpus_per_node:i=8 train.colocate_actor_ref:t
train.colocate_critic_reward:t train.colocate_all:t vllm.num_engines:i vllm.tensor_parallel_size:i=1
vllm.sync_backend:s=nccl vllm.sync_with_ray:t vllm.enable_prefix_caching:t vllm.enforce_eager:t vllm.enable_sleep:t
vllm.gpu_memory_utilization:f=0.95 train.async_enable:t train.async_queue_size:i train.partial_rollout_enable:t
actor.gradient_checkpointing_enable:t actor.gradient_checkpointing_reentrant:t ds.enable_sleep:t
train.dynamic_batch_enable:t rollout.max_tokens_per_gpu:i train.max_tokens_per_gpu:i=16192 train.num_episodes:i
rollout.batch_size:i=1024 rollout.vllm_generate_batch_size:i rollout.micro_batch_size:i=1 rollout.max_new_tokens:i
actor.eps_clip:f critic.value_clip:f algo.advantage.lambd:f algo.advantage.gamma:f rollout.top_p:f
rollout.temperature:f rollout.n_samples_per_prompt:i=1 critic.save_value_network:t algo.kl.target:f
algo.kl.init_coef:f=0.01 algo.kl.estimator:s actor.policy_loss_type:s algo.advantage.estimator:s=gae
algo.kl.use_loss:t algo.advantage.no_std_norm:t reward.normalize_enable:t reward.clip_range:f2
actor.model_name_or_path:s reward.model_name_or_path:s reward.remote_url:s critic.model_name_or_path:s ref.offload:t
reward.offload:t train.agent_func_path:s data.prompt_dataset:s data.prompt_probs:s data.label_key:s
actor.adam.lr:f critic.adam.lr:f actor.freezing_steps:i critic.freezing_steps:i train.enable_ema:t actor.entropy_coef:f
'''
OLD = {
    'micro_train_batch_size': 'train.micro_batch_size',
    'micro_rollout_batch_size': 'rollout.micro_batch_size',
    'train_batch_size': 'train.batch_size',
    'rollout_batch_size': 'rollout.batch_size',
    'use_dynamic_batch': 'train.dynamic_batch_enable',
    'train_max_tokens_per_gpu': 'train.max_tokens_per_gpu',
    'rollout_max_tokens_per_gpu': 'rollout.max_tokens_per_gpu',
    'zero_stage': 'ds.zero_stage',
    'adam_offload': 'ds.adam_offload',
    'packing_samples': 'ds.packing_samples',
    'deepspeed_enable_sleep': 'ds.enable_sleep',
    'ring_attn_size': 'ds.ring_attn_size',
    'gradient_checkpointing': 'actor.gradient_checkpointing_enable',
    'vllm_gpu_memory_utilization': 'vllm.gpu_memory_utilization',
    'vllm_enable_sleep': 'vllm.enable_sleep',
    'vllm_num_engines': 'vllm.num_engines',
    'vllm_tensor_parallel_size': 'vllm.tensor_parallel_size',
    'enforce_eager': 'vllm.enforce_eager',
    'colocate_all_models': 'train.colocate_all',
    'max_len': 'data.max_len',
    'ref_reward_offload': 'ref.offload',
    'pretrain': 'actor.model_name_or_path',
    'n_samples_per_prompt': 'rollout.n_samples_per_prompt',
    'actor_num_nodes': 'actor.num_nodes',
    'actor_num_gpus_per_node': 'actor.num_gpus_per_node',
    'generate_max_len': 'rollout.max_new_tokens',
    'prompt_data': 'data.prompt_dataset',
    'bf16': None,
    'prompt_max_len': None,
    'use_wandb': 'logger.wandb.key',
    'max_samples': 'data.max_samples',
    'flash_attn': None,
    'save_path': 'ckpt.output_dir',
    'learning_rate': 'adam.lr',
    'dataset': 'data.dataset',
    'max_epochs': 'train.max_epochs',
}
CLASS = {
    'weight_sync': ('PolicyModelActor', 'broadcast_to_vllm'),
    'log_probs': ('PolicyModelActor', 'forward'),
    'ref_log_probs': ('ReferenceModelActor', 'forward'),
    'init': ('PolicyModelActor', 'init_model_from_pretrained'),
    'checkpoint': ('PolicyModelActor', 'save_checkpoint'),
    'generation': ('RolloutRayActor', 'generate_responses'),
}
R = 'openrlhf/trainer/ray/ppo_actor.py'
STEP = [
    (R, 512, 'fit', 'status = self.trainer.ppo_train(kl_ctl)'),
    (R, 201, 'ppo_train', 'status = self.training_step(experience, kl_ctl, step)'),
]
WHERE = {
    'forward': STEP
    + [
        (R, 240, 'training_step', 'action_log_probs, output = self.actor('),
        (
            'openrlhf/models/actor.py',
            188,
            'forward',
            'output = self.model(sequences, attention_mask=foward_attention_mask, position_ids=position_ids)',
        ),
    ],
    'backward': STEP
    + [
        (R, 302, 'training_step', 'self.strategy.backward(loss, self.actor, self.actor_optim)'),
        ('openrlhf/utils/deepspeed/deepspeed.py', 151, 'backward', 'model.backward(loss)'),
        (
            'deepspeed/runtime/engine.py',
            2187,
            'backward',
            'self._do_optimizer_backward(loss, retain_graph)',
        ),
    ]
    + text.AUTOGRAD,
    'optimizer': STEP
    + [
        (
            R,
            309,
            'training_step',
            'self.strategy.optimizer_step(self.actor_optim, self.actor, self.actor_scheduler, name="actor")',
        ),
        ('deepspeed/runtime/engine.py', 2335, 'step', 'self._take_model_step(lr_kwargs)'),
        ('deepspeed/runtime/zero/stage3.py', 2201, 'step', 'self._optimizer_step(sub_group_id)'),
    ],
    'log_probs': [
        (R, 560, 'forward', 'action_log_probs = self.actor('),
        (
            'openrlhf/models/utils.py',
            121,
            'log_probs_from_logits',
            'logprobs_labels = torch.gather(log_probs, dim=-1, index=labels.unsqueeze(-1))',
        ),
    ],
    'weight_sync': [
        (R, 590, 'broadcast_to_vllm', 'self.trainer._broadcast_to_vllm()'),
        (
            R,
            421,
            '_broadcast_to_vllm',
            'with deepspeed.zero.GatheredParameters([param], enabled=self.strategy.args.ds.zero_stage == 3):',
        ),
        ('deepspeed/runtime/zero/partition_parameters.py', 1553, 'all_gather', 'handle.wait()'),
    ],
    'init': [
        (R, 452, 'init_model_from_pretrained', 'actor = Actor('),
        (
            'transformers/modeling_utils.py',
            4574,
            'from_pretrained',
            ') = cls._load_pretrained_model(',
        ),
    ],
    'checkpoint': [
        (R, 640, 'save_checkpoint', 'self.strategy.save_ckpt('),
        (
            'deepspeed/runtime/engine.py',
            3354,
            'save_16bit_model',
            'state_dict = self._zero3_consolidated_16bit_state_dict()',
        ),
    ],
}


class OpenRlhf(RayTrainer):
    name = 'openrlhf'
    script = 'openrlhf/cli/train_ppo_ray.py'
    root = '/openrlhf/'
    actor = 'PolicyModelActor'
    module = 'openrlhf.trainer.ray.ppo_actor'

    def parse(self):
        self.ppo = 'ppo' in self.program
        spec = COMMON.replace('@M', '1' if self.ppo else '8') + (PPO if self.ppo else MODEL)
        if self.scenario.get('old'):
            kinds = {}
            for item in spec.split():
                name, kind = item.split(':', 1)
                kinds[name] = kind
            spec = ' '.join(
                '%s:%s'
                % (
                    old,
                    (
                        kinds.get(new, 't' if old == 'bf16' else 's').replace('i=1', 'i=4')
                        if new
                        else 't' if old in ('bf16', 'flash_attn') else 's'
                    ),
                )
                for old, new in OLD.items()
            )
        parser = flags(self.program.rpartition('.')[2] + '.py', spec, abbrev=True)
        args = parser.parse_args(self.argv)
        values = dict(vars(args))
        self.settings = dict(values)
        if self.scenario.get('old'):
            values = {new: values[old] for old, new in OLD.items() if new and old in values}
        self.values = values
        g = self.get
        if g('ds.ring_attn_size', 1) > 1 and not g('ds.packing_samples'):
            raise Refused(
                ['AssertionError: Need --ds.packing_samples with --ds.ring_attn_size > 1']
            )
        dp = max(1, self.world // (g('ds.ring_attn_size', 1) * g('ds.tensor_parallel_size', 1)))
        micro, whole = g('train.micro_batch_size', 1), g('train.batch_size', 128)
        if micro < 1 or whole % (micro * dp):
            raise Refused(
                text.traceback(
                    [
                        (
                            'deepspeed/runtime/config.py',
                            994,
                            '_batch_assertion',
                            'assert train_batch == micro_batch * grad_acc * self.world_size, (',
                        )
                    ],
                    'AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * '
                    'world_size %d != %d * %d * %d'
                    % (whole, micro, whole // (micro * dp) if micro else 0, dp),
                )
            )
        if self.ppo:
            roll = g('rollout.batch_size', 1024) * g('rollout.n_samples_per_prompt', 1)
            if roll // max(1, g('rollout.micro_batch_size', 1)) < self.world:
                raise Refused(
                    'AssertionError: The number of sample batches must be greater than or equal to the effective number of actor processes.'
                )
            if g('ds.enable_sleep') and g('train.async_enable'):
                raise Refused('AssertionError: Async RLHF does not support --ds.enable_sleep')
        else:
            self.actor = ''

    def get(self, key, default=None):
        value = self.values.get(key)
        return default if value is None else value

    def load(self):
        g = self.get
        stage = g('ds.zero_stage', 2)
        seq = g('data.max_len', 2048)
        sp = g('ds.ring_attn_size', 1)
        lora = g('ds.lora.rank', 0)
        lo = Load(
            shard={0: 'ddp', 1: 'z1', 2: 'z2', 3: 'z3'}[stage],
            tp=g('ds.tensor_parallel_size', 1),
            weight_bytes=2,
            grad_bytes=2,
            opt_bytes=12,
            trainable=0.02 if lora else 1.0,
            opt_offload=1.0 if g('ds.adam_offload') else 0.0,
            recompute=(
                'full'
                if g('actor.gradient_checkpointing_enable')
                or g('model.gradient_checkpointing_enable')
                else 'none'
            ),
            fused_loss=bool(g('ds.use_liger_kernel')),
            workers=g('data.dataloader_num_workers', 0),
            gather_save=1.0 if stage == 3 and self.hidden.get('gather') else 0.0,
        )
        if g('train.dynamic_batch_enable'):
            lo.tokens = max(g('train.max_tokens_per_gpu', 16192), seq) // sp
            lo.lp_tokens = (
                max(g('rollout.max_tokens_per_gpu') or g('train.max_tokens_per_gpu', 16192), seq)
                // sp
            )
        else:
            lo.tokens = g('train.micro_batch_size', 1) * seq // sp
            lo.lp_tokens = g('rollout.micro_batch_size', 1) * seq // sp
        if 'dpo' in self.program:
            lo.tokens *= 2
        lo.ref_tokens = lo.lp_tokens
        if self.ppo:
            colocated = bool(g('train.colocate_all'))
            lo.train_sleeps = bool(colocated and g('ds.enable_sleep'))
            lo.engine = Engine(
                'vllm',
                g('vllm.gpu_memory_utilization', 0.95),
                tp=g('vllm.tensor_parallel_size', 1),
                running=256,
                colocated=colocated,
                sleeps=bool(g('vllm.enable_sleep')),
                max_len=seq,
                graph_batch=0 if g('vllm.enforce_eager') else 128,
            )
            lo.sync_buffer = 64 << 20
        return lo

    def steps(self):
        if not self.ppo:
            out = [('init', 1)]
            for step in (1, 2, 3):
                out += [('data', step), ('forward', step), ('backward', step), ('optimizer', step)]
            return out + [('checkpoint', 3)]
        out = [('engine_init', 1), ('init', 1)]
        for step in (1, 2, 3):
            out += [
                ('generation', step),
                ('data', step),
                ('ref_log_probs', step),
                ('log_probs', step),
                ('forward', step),
                ('backward', step),
                ('optimizer', step),
                ('weight_sync', step + 1),
            ]
        return out + [('checkpoint', 3)]

    def before(self, phase, step):
        p = self.prefix(self.actor_of(phase)[0]) if self.ppo else ''
        if phase == 'init':
            self.out.say(
                '[%s,113] [INFO] [config.py:684:__init__] Config mesh_device None world_size = %d'
                % (self.out.stamp(), self.world),
                prefix=p,
            )
        elif phase == 'generation':
            self.out.say(
                'Generate experience:   0%|          | 0/64 [00:00<?, ?it/s]',
                prefix='(PPOTrainer pid=81583) ',
            )
        elif phase == 'forward':
            self.out.say(
                'Train epoch [1/1]:  %d%%|##        | 3/16 [00:12<00:52,  4.0s/it, pg=0.0021, ret=0.51]'
                % (10 * step),
                prefix=p,
            )

    def actor_of(self, phase):
        cls, method = CLASS.get(phase, ('PolicyModelActor', 'fit'))
        return cls, method, self.module

    def driver_frames(self, phase):
        func = 'make_experience' if phase in ('log_probs', 'ref_log_probs', 'generation') else 'fit'
        return [
            (self.root + self.script, 560, '<module>', 'train(args)'),
            (self.root + 'openrlhf/trainer/ppo_trainer.py', 231, func, 'status = ray.get(refs)'),
        ]

    def where(self, phase):
        items = WHERE.get({'ref_log_probs': 'log_probs'}.get(phase, phase), WHERE['forward'])
        if not self.ppo:
            items = [
                (
                    p.replace('trainer/ray/ppo_actor.py', 'trainer/sft_trainer.py'),
                    n,
                    f.replace('training_step', 'fit').replace('ppo_train', 'fit'),
                    c,
                )
                for p, n, f, c in items
            ]
        return [(self.root + p if p.startswith('openrlhf') else p, n, f, c) for p, n, f, c in items]

    def crash(self, death):
        if self.ppo:
            return super().crash(death)
        from .ranks import RankTrainer

        class Ranks(RankTrainer):
            main_frames = self.driver_frames_sft
            where = self.where

        me = Ranks.__new__(Ranks)
        me.__dict__.update(self.__dict__)
        return Ranks.crash(me, death)

    def driver_frames_sft(self, *_):
        return [
            (self.root + 'openrlhf/cli/train_sft.py', 231, '<module>', 'train(args)'),
            (
                self.root + 'openrlhf/cli/train_sft.py',
                140,
                'train',
                'trainer.fit(args, consumed_samples, num_update_steps_per_epoch)',
            ),
        ]

    def wake_death(self, death):
        message = (
            'RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62'
        )
        head = text.ray_task_error(
            'RolloutRayActor', 'wake_up', 'openrlhf.trainer.ray.vllm_engine', 'RuntimeError'
        )
        self.out.err(
            *text.traceback(self.driver_frames('') + text.RAY_GET, head),
            *text.frames(
                [
                    ('vllm/v1/worker/gpu_worker.py', 131, 'wake_up', 'allocator.wake_up(tags)'),
                    ('vllm/device_allocator/cumem.py', 225, 'wake_up', 'create_and_map(handle)'),
                ]
            ),
            message
        )
        return 1

    def engine_death(self, death):
        from .servers import vllm_death

        vllm_death(self.out, death, self.torch, prefix='(RolloutRayActor pid=6990) ')
        self.worker_died('RolloutRayActor')
        return 1
