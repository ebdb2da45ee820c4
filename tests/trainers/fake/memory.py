# SPDX-License-Identifier: Apache-2.0
"""The hidden memory model: what one attempt needs in each phase, from its effective settings.

It is simple, but every term is one that a real job has, with sizes of the right order, so that a
remedy frees what it frees in life: weights, gradients and optimizer state by how they are
sharded, activations by tokens and recomputation, logits by tokens and vocabulary, an inference
engine by its fraction of the card, buffers by their flag. A term is allocated in pieces; the
piece that does not fit is the one that the message names.
"""

GIB = 1 << 30
MIB = 1 << 20


class Term:
    __slots__ = ('name', 'size', 'piece')

    def __init__(self, name, size, pieces=1):
        self.name = name
        self.size = max(0, int(size))
        self.piece = max(1, int(self.size / max(1, pieces)))


class Engine:
    """An inference engine, alone or on the trainer's card."""

    def __init__(self, kind, fraction, **kw):
        self.kind = kind  # sglang | vllm
        self.fraction = fraction
        self.tp = 1
        self.colocated = True
        self.sleeps = True  # gives its memory back while the trainer works
        self.same_process = False
        self.prefill_tokens = 8192
        self.running = 256  # requests that run at a time
        self.graph_batch = 160  # 0: no graphs
        self.max_len = 8192
        self.kv_bytes = 2  # per element
        self.offload_bytes = 0  # weights kept on the host
        self.weight_bytes = 2
        self.__dict__.update(kw)


class Load:
    """Settings that decide memory, spelled the same for every framework."""

    def __init__(self, **kw):
        self.world = 8
        self.per_node = 8
        self.tp = self.pp = self.cp = self.ep = 1
        self.shard = 'dist'  # ddp | dist (optimizer only) | z1 | z2 | z3
        self.weight_bytes = 2
        self.grad_bytes = 4
        self.opt_bytes = 12
        self.trainable = 1.0  # LoRA: the share of the parameters that learns
        self.opt_offload = 0.0  # share of the optimizer state on the host
        self.param_offload = False
        self.opt_returns = False  # offloaded between phases only, back for the update
        self.tokens = 8192  # in one micro batch on one GPU
        self.lp_tokens = None  # log-probs; None: as tokens
        self.ref_tokens = None
        self.recompute = 'none'  # none | selective | full
        self.sequence_parallel = True
        self.act_offload = False  # activations that wait on the host
        self.fused_loss = False  # logits are never whole
        self.loss_recompute = False
        self.lp_chunked = False
        self.layer_step = False  # the optimizer streams state layer by layer
        self.init_full = 0  # bytes a parameter of the whole model while loading
        self.init_host_full = 0  # the same on the host, once
        self.engine = None
        self.train_sleeps = True  # the trainer leaves the card during generation
        self.sync_buffer = 512 * MIB
        self.sync_disk = False
        self.sync_host = 0.0  # host copies of the weights (backups), in models
        self.buckets = 0  # bytes of reduce and gather buckets
        self.workers = 2
        self.prefetch = 2
        self.pinned = True
        self.host_pool = 0  # bytes of buffers named by flags
        self.gather_save = 0.0  # share of the model gathered on one card when saving
        self.eval_tokens = 0
        self.eval_keep = 0  # evaluation logits that stay on the card, in tokens
        self.expandable = False
        self.nccl_channels = 32
        self.__dict__.update(kw)


class Model:
    def __init__(self, scenario):
        m = scenario.get('model', {})
        self.params = m.get('params_b', 7.6) * 1e9
        self.layers = m.get('layers', 28)
        self.hidden = m.get('hidden', 3584)
        self.vocab = m.get('vocab', 152064)
        self.heads = m.get('heads', 28)
        self.kv_heads = m.get('kv_heads', 4)
        self.expert_share = m.get('expert_share', 0.0)
        self.seq = m.get('seq', 4096)  # the longest sample that arrives
        self.kv_token = 2 * self.layers * self.kv_heads * m.get('head_dim', 128)


class Card:
    """What every phase of one attempt wants of one GPU, of the host and of /dev/shm."""

    def __init__(self, load, scenario):
        self.load = load
        self.model = Model(scenario)
        self.hidden = scenario.get('hidden', {})
        self.capacity = int(scenario.get('gpu_gib', 79.15) * GIB)
        self.context = int(self.hidden.get('context_gib', 0.6) * GIB)
        self.host_limit = int(scenario.get('host_gib', 1024) * GIB)
        self.shm_limit = int(scenario.get('shm_gib', 512) * GIB)

    # --- what stays -----------------------------------------------------------------------------

    def _local_params(self):
        lo, m = self.load, self.model
        dense = (1 - m.expert_share) / (lo.tp * lo.pp)
        return m.params * (dense + m.expert_share / (max(lo.tp, lo.ep) * lo.pp))

    def _shards(self):
        return max(1, self.load.world // (self.load.tp * self.load.pp))

    def weights(self):
        lo = self.load
        size = self._local_params() * lo.weight_bytes
        if lo.shard == 'z3':
            size = 0 if lo.param_offload else size / self._shards()
        return size

    def gathered(self):
        """Layers whose parameters are whole for a moment under full sharding."""
        if self.load.shard != 'z3':
            return 0
        return 2 * self._local_params() * min(2, self.load.weight_bytes) / self.model.layers

    def grads(self):
        lo = self.load
        size = self._local_params() * lo.trainable * lo.grad_bytes
        if lo.shard in ('z2', 'z3'):
            size = size / self._shards()
        return 0 if lo.shard == 'z3' and lo.param_offload else size

    def optimizer_whole(self):
        lo = self.load
        size = self._local_params() * lo.trainable * lo.opt_bytes
        return size / self._shards() if lo.shard in ('dist', 'z1', 'z2', 'z3') else size

    def optimizer(self, updating=False):
        lo = self.load
        if updating and lo.opt_returns:
            return self.optimizer_whole()
        if lo.layer_step or (lo.shard == 'z3' and lo.param_offload):
            return self.optimizer_whole() * 0.03
        return self.optimizer_whole() * (1 - lo.opt_offload)

    # --- what comes and goes --------------------------------------------------------------------

    def activations(self, tokens):
        lo, m = self.load, self.model
        layer = 34 * m.hidden / lo.tp
        if lo.tp > 1 and not lo.sequence_parallel:
            layer = (10 + 24 / lo.tp) * m.hidden
        kept = {'none': layer, 'selective': layer * 0.7}.get(lo.recompute, 2 * m.hidden / lo.tp)
        size = tokens * kept * m.layers
        if lo.recompute == 'full':
            size += tokens * layer
        if lo.act_offload:
            size *= 0.35
        return size * self.hidden.get('act_scale', 1.0)

    def logits(self, tokens, training=True):
        lo = self.load
        size = tokens * self.model.vocab * 10 / lo.tp
        if lo.fused_loss:
            size *= 0.08
        elif lo.loss_recompute and training:
            size *= 0.5
        return size

    def engine_weights(self):
        e = self.load.engine
        return max(0, self.model.params * e.weight_bytes / e.tp - e.offload_bytes)

    def engine_work(self):
        """Beyond weights and pool: prefill activations, sampling, what each request holds."""
        e, m = self.load.engine, self.model
        prefill = e.prefill_tokens * m.hidden * 48 / e.tp
        each = self.hidden.get('request_mib', 2) * MIB
        return prefill + e.running * (m.vocab * 8 / e.tp + each)

    def engine_graphs(self):
        e = self.load.engine
        each = self.hidden.get('graph_mib', 8 if e.kind == 'sglang' else 2)
        return 0.4 * GIB + e.graph_batch * each * MIB if e.graph_batch else 0

    def pool(self):
        """What the engine's fraction leaves for its KV cache."""
        e = self.load.engine
        size = e.fraction * self.capacity - self.engine_weights() - self.context
        return size - (self.engine_work() if e.kind == 'vllm' else 0)

    def engine_total(self):
        e = self.load.engine
        extra = self.engine_graphs()
        return max(e.fraction * self.capacity, self.engine_weights()) + extra

    # --- phases ---------------------------------------------------------------------------------

    def _others(self, awake):
        e = self.load.engine
        extra = self.hidden.get('neighbour_gib', 0) * GIB
        if e is None or not e.colocated:
            return extra
        return extra + (
            self.engine_total()
            if awake or not e.sleeps
            else self.hidden.get('asleep_gib', 1.4) * GIB
        )

    def _resident(self, step, before_training=False, updating=False):
        out = [Term('weights', self.weights(), 40)]
        if self.load.shard == 'dist' or not before_training:
            out.append(Term('grads', self.grads(), 12))
        if step > 1:
            out.append(Term('optimizer', self.optimizer(updating), 30))
        return out

    def terms(self, phase, step):
        """(terms of this process, bytes of other processes on the card)"""
        lo, m = self.load, self.model
        tokens = lo.tokens
        if phase == 'init':
            out = [Term('load', m.params * lo.init_full, 8)] if lo.init_full else []
            out.append(Term('weights', self.weights(), 40))
            if lo.shard == 'dist':
                out += [Term('grads', self.grads(), 3), Term('master', self.optimizer() / 3, 10)]
            return out, self.hidden.get('neighbour_gib', 0) * GIB
        if phase in ('log_probs', 'ref_log_probs'):
            tokens = lo.lp_tokens or tokens
            if phase == 'ref_log_probs':
                tokens = lo.ref_tokens or tokens
            inner = 68 * m.hidden * tokens / lo.tp
            logits = self.logits(tokens, training=False) * (0.075 if lo.lp_chunked else 0.6)
            out = self._resident(step, before_training=True)
            out += [
                Term('gathered', self.gathered(), 2),
                Term('activations', inner, 3),
                Term('logits', logits, 2),
            ]
        elif phase in ('forward', 'backward'):
            share = 0.6 if phase == 'forward' else 1.0
            out = self._resident(
                step, before_training=phase == 'forward' and step == 1, updating=True
            )
            out += [
                Term('gathered', self.gathered(), 2),
                Term('activations', self.activations(tokens), m.layers),
                Term('logits', self.logits(tokens) * share, 3),
            ]
            if lo.buckets and phase == 'backward':
                out.append(Term('bucket', lo.buckets, 2))
        elif phase == 'optimizer':
            out = self._resident(2, updating=True)
            aside = 0 if lo.opt_returns else lo.opt_offload
            out.append(Term('step', self.optimizer_whole() * 0.08 * (1 - aside), 4))
        elif phase == 'weight_sync':
            out = [Term('weights', self.weights(), 40)]
            if not lo.train_sleeps:
                out = self._resident(step)
            if not lo.sync_disk:
                largest = m.vocab * m.hidden * 2
                out += [
                    Term('bucket', 2 * max(lo.sync_buffer, largest), 2),
                    Term('gathered', self.gathered(), 2),
                ]
            return self._extra(out, phase), self._others(awake=True)
        elif phase == 'checkpoint':
            out = self._resident(2) + [Term('gather', m.params * 2 * lo.gather_save, 60)]
        elif phase == 'eval':
            keep = lo.eval_keep * m.vocab * 4
            out = self._resident(2) + [
                Term('logits', lo.eval_tokens * m.vocab * 4, 2),
                Term('predictions', keep, 2),
            ]
        elif phase == 'collective':
            out = self._resident(step) + [
                Term(
                    'channels',
                    lo.nccl_channels * self.hidden.get('channel_mib', 24) * MIB,
                    lo.nccl_channels,
                )
            ]
        else:
            raise ValueError(phase)
        return self._extra(out, phase), self._others(awake=False)

    def _extra(self, out, phase):
        extra = self.hidden.get('extra_gib', {}).get(phase, 0)
        if extra:
            out.append(Term('workspace', extra * GIB, 4))
        return out

    def generation(self, step):
        """Engine work on top of its static share, and what the trainer left behind."""
        lo = self.load
        work = self.engine_work()
        static = self.engine_total() - (work if lo.engine.kind == 'vllm' else 0)
        out = [Term('static', static, 64), Term('work', work, 4)]
        others = self.hidden.get('trainer_left_gib', 0.8) * GIB if lo.engine.colocated else 0
        if lo.engine.colocated and not lo.train_sleeps:
            others = sum(t.size for t in self._resident(max(step, 2))) + self.context
        return self._extra(out, 'generation'), others

    def fragmented(self, terms):
        """Reserved by the allocator but of no use; none with expandable segments."""
        if self.load.expandable:
            return 0
        moving = sum(t.size for t in terms if t.name in ('activations', 'logits', 'bucket', 'step'))
        return int(moving * self.hidden.get('fragmentation', 0.03))

    # --- host and shared memory -----------------------------------------------------------------

    def host(self, phase):
        lo, m = self.load, self.model
        ranks = min(lo.per_node, lo.world)
        size = self.hidden.get('host_base_gib', 24) * GIB + lo.host_pool
        size += lo.sync_host * self._local_params() * 2 * ranks
        size += lo.workers * ranks * self.hidden.get('worker_gib', 0.8) * GIB
        if phase == 'init' and lo.init_host_full:
            return size + m.params * lo.init_host_full
        offload = self.optimizer_whole() * lo.opt_offload
        if lo.layer_step or lo.param_offload:
            offload = self.optimizer_whole()
        if lo.param_offload:
            offload += self._local_params() * lo.weight_bytes / self._shards()
        if lo.engine is not None and lo.engine.offload_bytes:
            offload += lo.engine.offload_bytes
        return size + offload * ranks * self.hidden.get('offload_scale', 1.0)

    def shm(self):
        lo = self.load
        ranks = min(lo.per_node, lo.world)
        return lo.workers * lo.prefetch * ranks * self.hidden.get('sample_mib', 24) * MIB
