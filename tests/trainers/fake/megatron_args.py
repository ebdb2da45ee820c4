# SPDX-License-Identifier: Apache-2.0
"""Megatron-LM's flags (those that training scripts set), its checks, and what they cost. Shared
by Megatron itself, slime and Relax."""

from .memory import MIB, Load
from .parsers import Refused
from .text import traceback

FLAGS = '''
num-layers:i hidden-size:i ffn-hidden-size:i num-attention-heads:i num-query-groups:i kv-channels:i
group-query-attention:t max-position-embeddings:i position-embedding-type:s rotary-base:i
rotary-percent:f use-rotary-position-embeddings:t use-rope-scaling:t rope-scaling-factor:f
normalization:s norm-epsilon:f swiglu:t squared-relu:t disable-bias-linear:nadd_bias_linear
add-qkv-bias:t qk-layernorm:t untie-embeddings-and-output-weights:t vocab-size:i
make-vocab-size-divisible-by:i hidden-dropout:f attention-dropout:f attention-backend:s
attention-softmax-in-fp32:t use-flash-attn:t multi-latent-attention:t q-lora-rank:i kv-lora-rank:i
qk-head-dim:i qk-pos-emb-head-dim:i v-head-dim:i rotary-scaling-factor:f mscale:f mscale-all-dim:f
mtp-num-layers:i num-experts:i moe-layer-freq:s moe-ffn-hidden-size:i moe-router-topk:i
moe-shared-expert-intermediate-size:i moe-shared-expert-overlap:t moe-router-score-function:s
moe-router-pre-softmax:t moe-router-load-balancing-type:s+ moe-aux-loss-coeff:f+
moe-token-dispatcher-type:s moe-grouped-gemm:t moe-permute-fusion:t moe-router-dtype:s
moe-enable-deepep:t moe-router-enable-expert-bias:t moe-router-bias-update-rate:f
moe-router-num-groups:i moe-router-group-topk:i moe-router-topk-scaling-factor:f
tensor-model-parallel-size:i=1 pipeline-model-parallel-size:i=1 context-parallel-size:i=1
expert-model-parallel-size:i=1 expert-tensor-parallel-size:i sequence-parallel:t
virtual-pipeline-model-parallel-size:i num-layers-per-virtual-pipeline-stage:i
decoder-first-pipeline-num-layers:i decoder-last-pipeline-num-layers:i cp-comm-type:s+
account-for-embedding-in-pipeline-split:t account-for-loss-in-pipeline-split:t
micro-batch-size:i global-batch-size:i rampup-batch-size:s* seq-length:i decoder-seq-length:i
train-iters:i train-samples:i exit-interval:i exit-duration-in-mins:i eval-iters:i=100
eval-interval:i=1000 skip-train:t manual-gc:t manual-gc-interval:i
recompute-granularity:s{full,selective} recompute-method:s{uniform,block} recompute-num-layers:i
recompute-activations:t recompute-modules:s* distribute-saved-activations:t
cpu-offloading-num-layers:i=0 cpu-offloading:t fine-grained-activation-offloading:t
offload-modules:s* optimizer:s=adam{adam,sgd} optimizer-cpu-offload:t optimizer-offload-fraction:f=1.0
overlap-cpu-optimizer-d2h-h2d:t use-torch-optimizer-for-cpu-offload:t no-pin-cpu-grads:npin_cpu_grads
no-pin-cpu-params:npin_cpu_params use-precision-aware-optimizer:t main-grads-dtype:s=fp32{fp32,bf16}
main-params-dtype:s=fp32{fp32,fp16} exp-avg-dtype:s=fp32{fp32,fp16,bf16,fp8}
exp-avg-sq-dtype:s=fp32{fp32,fp16,bf16,fp8} use-distributed-optimizer:t overlap-grad-reduce:t
overlap-param-gather:t ddp-bucket-size:i ddp-num-buckets:i ddp-average-in-collective:t use-nccl-ub:t
use-megatron-fsdp:t use-torch-fsdp2:t use-custom-fsdp:t data-parallel-sharding-strategy:s
accumulate-allreduce-grads-in-fp32:t no-gradient-accumulation-fusion:ngradient_accumulation_fusion
calculate-per-token-loss:t cross-entropy-loss-fusion:t cross-entropy-fusion-impl:s
lr:f min-lr:f lr-decay-style:s lr-decay-iters:i lr-decay-samples:i lr-warmup-iters:i
lr-warmup-samples:i lr-warmup-fraction:f lr-warmup-init:f weight-decay:f adam-beta1:f adam-beta2:f
adam-eps:f clip-grad:f init-method-std:f bf16:t fp16:t fp8-format:s fp8-recipe:s fp8-param-gather:t
fp8-amax-history-len:i fp8-amax-compute-algo:s loss-scale:f seed:i use-cpu-initialization:t
save:s load:s save-interval:i ckpt-format:s ckpt-step:i async-save:t no-save-optim:t no-save-rng:t
no-load-optim:t no-load-rng:t finetune:t use-checkpoint-args:t ckpt-fully-parallel-save:t
dist-ckpt-strictness:s auto-detect-ckpt-format:t pretrained-checkpoint:s data-path:s* split:s
train-data-path:s* valid-data-path:s* test-data-path:s* data-cache-path:s mock-data:t num-workers:i=2
dataloader-type:s reset-position-ids:t reset-attention-mask:t eod-mask-loss:t
no-create-attention-mask-in-dataloader:ncreate_attention_mask tokenizer-type:s tokenizer-model:s
vocab-file:s merge-file:s tiktoken-pattern:s log-interval:i log-throughput:t log-params-norm:t
log-num-zeros-in-grad:t log-timers-to-tensorboard:t log-memory-to-tensorboard:t
log-validation-ppl-to-tensorboard:t timing-log-level:i tensorboard-dir:s
tensorboard-queue-size:i tensorboard-log-interval:i wandb-project:s wandb-exp-name:s wandb-save-dir:s
wandb-entity:s distributed-backend:s distributed-timeout-minutes:i local-rank:i transformer-impl:s
use-mcore-models:t no-masked-softmax-fusion:nmasked_softmax_fusion empty-unused-memory-level:i=0{0,1,2}
no-bias-swiglu-fusion:nbias_swiglu_fusion no-rope-fusion:napply_rope_fusion profile:t
profile-step-start:i profile-step-end:i profile-ranks:i+ use-pytorch-profiler:t
record-memory-history:t memory-snapshot-path:s tp-comm-overlap:t enable-cuda-graph:t yaml-cfg:s
max-tokens-to-oom:i=12000 rerun-mode:s check-weight-hash-across-dp-replicas-interval:i
'''

STATE = {'fp32': 4, 'fp16': 2, 'bf16': 2, 'fp8': 1}


def _refuse(frames, error):
    return Refused(traceback(frames, error))


def check(a, root, world):
    """validate_args and the configuration classes behind it."""
    path = root + 'megatron/training/arguments.py'
    frame = [(path, 1417, 'validate_args', 'assert args.recompute_method is not None, \\')]
    if a.recompute_activations:
        a.recompute_granularity = 'selective'
    layers = a.num_layers or 0
    if a.recompute_granularity == 'full' and a.recompute_method is None:
        raise _refuse(
            frame,
            'AssertionError: for distributed recompute activations to work you need '
            'to use a recompute method ',
        )
    if a.recompute_granularity == 'selective' and a.recompute_method is not None:
        raise _refuse(
            frame,
            'AssertionError: recompute method is not yet supported for selective '
            'recomputing granularity',
        )
    config = root + 'megatron/core/transformer/transformer_config.py'
    if a.recompute_granularity == 'full' and a.recompute_num_layers is None:
        raise _refuse(
            [(config, 1920, '__post_init__', 'raise ValueError(')],
            'ValueError: When using recompute_granularity: full, recompute_num_layers must be '
            'between 1 and num_layers_per_pipeline_rank: %d'
            % (layers // a.pipeline_model_parallel_size),
        )
    if a.recompute_granularity == 'selective' and a.recompute_num_layers is not None:
        raise _refuse(
            [(config, 1934, '__post_init__', 'raise ValueError(')],
            'ValueError: When using recompute_granularity: selective, recompute_num_layers '
            'must be None.',
        )
    if (
        a.recompute_modules
        and 'shared_experts' in a.recompute_modules
        and a.moe_shared_expert_overlap
    ):
        raise _refuse(
            [(config, 1960, '__post_init__', 'raise ValueError(')],
            'ValueError: shared_experts recompute cannot work with --moe-shared-expert-overlap.',
        )
    if a.cpu_offloading_num_layers and a.recompute_granularity:
        raise _refuse(
            [(config, 1880, '__post_init__', 'raise ValueError(')],
            'ValueError: CPU offloading does not work when activation recomputation is enabled',
        )
    if a.cpu_offloading_num_layers and a.pipeline_model_parallel_size > 1:
        raise _refuse(
            [(config, 1876, '__post_init__', 'raise ValueError(')],
            'ValueError: Currently there is no support for Pipeline parallelism with CPU '
            'offloading',
        )
    frame = [(path, 1884, 'validate_args', 'assert args.use_precision_aware_optimizer, (')]
    if a.optimizer_cpu_offload and not a.use_precision_aware_optimizer:
        raise _refuse(
            frame,
            'AssertionError: The optimizer cpu offload must be used in conjunction with '
            '`--use-precision-aware-optimizer`, as the hybrid device optimizer reuses '
            'the code path of this flag.',
        )
    if a.use_precision_aware_optimizer and not a.use_distributed_optimizer:
        raise _refuse(
            [
                (
                    root + 'megatron/core/optimizer/__init__.py',
                    1057,
                    'get_megatron_optimizer',
                    'raise ValueError(',
                )
            ],
            'ValueError: precision-aware optimizer only supported with distributed optimizer',
        )
    if a.use_precision_aware_optimizer and a.optimizer != 'adam':
        raise _refuse(
            [
                (
                    root + 'megatron/core/optimizer/optimizer_config.py',
                    433,
                    '__post_init__',
                    "assert self.optimizer == 'adam'",
                )
            ],
            'AssertionError: --use-precision-aware-optimizer only supported with adam',
        )
    low = [
        n
        for n in ('main_grads_dtype', 'main_params_dtype', 'exp_avg_dtype', 'exp_avg_sq_dtype')
        if getattr(a, n) != 'fp32'
    ]
    if low and not a.use_precision_aware_optimizer:
        raise _refuse(
            frame,
            'AssertionError: %s can only be fp32 when not using precision-aware '
            'optimizer' % low[0],
        )
    parts = a.tensor_model_parallel_size * a.pipeline_model_parallel_size * a.context_parallel_size
    if world % parts:
        raise _refuse(
            [(path, 402, 'validate_args', 'assert args.world_size % total_model_size == 0')],
            'AssertionError: world size (%d) is not divisible by total_model_size (encoder_model'
            '_size=0 + decoder_model_size=%d)' % (world, parts),
        )
    heads, groups = a.num_attention_heads, a.num_query_groups
    if heads and heads % a.tensor_model_parallel_size:
        raise _refuse(
            [(config, 1610, '__post_init__', 'raise ValueError(')],
            'ValueError: num_attention_heads (%d) must be a multiple of tensor_model_parallel_'
            'size (%d).' % (heads, a.tensor_model_parallel_size),
        )
    if a.group_query_attention and groups and groups % a.tensor_model_parallel_size:
        raise _refuse(
            [(config, 1620, '__post_init__', 'raise ValueError(')],
            'ValueError: num_query_groups (%d) must be a multiple of tensor_model_parallel_size '
            '(%d).' % (groups, a.tensor_model_parallel_size),
        )


def load(a, world, channels):
    """The memory meaning of Megatron's flags."""
    state = STATE[a.main_params_dtype] + STATE[a.exp_avg_dtype] + STATE[a.exp_avg_sq_dtype]
    if a.optimizer == 'sgd':
        state = 8
    if a.tensor_model_parallel_size == 1:
        a.sequence_parallel = False
    return Load(
        world=world,
        tp=a.tensor_model_parallel_size,
        pp=a.pipeline_model_parallel_size,
        cp=a.context_parallel_size,
        ep=a.expert_model_parallel_size,
        shard='z3' if a.use_megatron_fsdp else 'dist' if a.use_distributed_optimizer else 'ddp',
        grad_bytes=STATE[a.main_grads_dtype] if a.use_precision_aware_optimizer else 4,
        opt_bytes=state,
        opt_offload=a.optimizer_offload_fraction if a.optimizer_cpu_offload else 0.0,
        recompute=a.recompute_granularity or 'none',
        sequence_parallel=a.sequence_parallel,
        act_offload=bool(a.cpu_offloading_num_layers or a.fine_grained_activation_offloading),
        fused_loss=a.cross_entropy_loss_fusion and a.cross_entropy_fusion_impl == 'linear',
        workers=a.num_workers,
        nccl_channels=channels,
        sync_buffer=512 * MIB,
    )
