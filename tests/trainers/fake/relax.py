# SPDX-License-Identifier: Apache-2.0
"""Relax: relax.entrypoints.train. Of slime's line, with checks of its own and flags of its own."""

from .slime import FLAGS, Slime, json_roles

MORE = '''
resource:s fully-async:t hybrid:t ref-actor-config:s max-staleness:i num-data-storage-units:i
train-memory-margin-bytes:i=1073741824 disable-weights-backuper:nenable_weights_backuper
enable-cuda-memory-check:t profile-with-memory:t streaming-buffer-size:i=10000
prefetch-max-cached:i=256 mm-processor-pool-size:i=0 sft-logits-chunk-size:i=1024
sft-chunked-logits:t genrm-engine-config:s use-health-check:t max-global-restart:i=3
dynamic-context-parallel:t polling-mode:t num-iters-per-train-update:i training-mode:s
'''


class Relax(Slime):
    name = 'relax'
    script = 'relax/entrypoints/train.py'
    root = '/root/Relax/'
    package = 'relax'
    module = 'relax.backends.megatron.actor'
    flags = FLAGS + MORE

    def check_framework(self, a):
        super().check_framework(a)
        if a.use_dynamic_batch_size and a.qkv_format == 'bshd':
            self.refuse(2210, 'ValueError: qkv_format bshd does not support use_dynamic_batch_size')
        if a.loss_type == 'sft_loss' and not a.use_dynamic_batch_size:
            self.refuse(2216, 'ValueError: SFT requires --use-dynamic-batch-size')
        if a.fully_async and a.colocate:
            self.refuse(
                2221,
                'ValueError: --fully-async cannot be used with --colocate, use --hybrid instead',
            )
        if a.context_parallel_size > 1 and not a.calculate_per_token_loss:
            self.refuse(2230, 'ValueError: context parallel needs --calculate-per-token-loss')
        if (
            a.use_dynamic_batch_size
            and a.rollout_max_context_len
            and not a.dynamic_context_parallel
        ):
            if a.max_tokens_per_gpu * a.context_parallel_size < a.rollout_max_context_len:
                self.refuse(
                    2240,
                    'ValueError: max_tokens_per_gpu (%d) * context_parallel_size (%d) must be '
                    'greater than or equal to rollout_max_context_len (%d)'
                    % (a.max_tokens_per_gpu, a.context_parallel_size, a.rollout_max_context_len),
                )

    def load(self):
        a = self.args
        lo = super().load()
        roles = json_roles(a.ref_actor_config)
        # the actor's own log-probs follow max_tokens_per_gpu when colocated
        separate = a.log_probs_max_tokens_per_gpu or roles.get('max_tokens_per_gpu')
        if separate:
            lo.ref_tokens = separate
            if a.fully_async:
                lo.lp_tokens = separate
        if a.sft_chunked_logits:
            lo.loss_recompute = True
        # buffers and pools on the host
        lo.host_pool = (
            a.streaming_buffer_size * self.hidden.get('stream_item_kib', 256) * 1024
            + a.prefetch_max_cached * self.hidden.get('cached_mib', 8) * (1 << 20)
            + a.mm_processor_pool_size * (2 << 30)
        )
        if lo.train_sleeps:
            lo.buckets += a.train_memory_margin_bytes
        return lo

    def local(self, items):
        return [
            (p.replace('backends/megatron_utils/', 'backends/megatron/'), *rest)
            for p, *rest in super().local(items)
        ]

    def before(self, phase, step):
        if phase == 'forward':
            self.log(
                'start to get rollout_id: %d data from transfer queue for train with mcore.'
                % (step - 1)
            )
        super().before(phase, step)

    def driver_frames(self, phase):
        return [
            (self.root + self.script, 106, '<module>', 'main()'),
            (
                '/root/Relax/relax/core/controller.py',
                412,
                'training_loop',
                'ray.get(self.actor.train.remote(rollout_id))',
            ),
        ]
