source "$(dirname "${BASH_SOURCE[0]}")/model.sh"

launch() {
    python3 -m relax.entrypoints.train --colocate --ref-load /ckpt/ref \
        --tensor-model-parallel-size @tp|2@ --sequence-parallel --use-distributed-optimizer \
        --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \
        --use-dynamic-batch-size --max-tokens-per-gpu "$1" "${MODEL_ARGS[@]}" \
        --sglang-mem-fraction-static @fraction|0.7@ @extra|@
}
