#!/bin/bash
set -e
NGPU=${NGPU:-"8"}
export LOG_RANK=${LOG_RANK:-0}
COMMON_ARGS=(
    "--module llama3"
    "--training.local_batch_size 8"
    "--training.seq_len 2048"
    "--checkpoint.no-enable"
)
run_test() {
    local test_name="$1"
    shift
    local extra_args=("$@")
    local dump_dir="out/${test_name}"
    mkdir -p "${dump_dir}"
    local cmd_args="${COMMON_ARGS[*]} --dump_folder ${dump_dir} ${extra_args[*]}"
    echo "Args: ${cmd_args}"
    torchrun \
        --nproc_per_node=${NGPU} \
        --rdzv_endpoint="localhost:0" \
        --local-ranks-filter ${LOG_RANK} \
        --role rank --tee 3 \
        -m torchtitan.train ${cmd_args}
    local exit_code=$?
    return ${exit_code}
}
test_a() {
    run_test "fsdp" "--parallelism.data_parallel_shard_degree 8"
}
test_b() {
    run_test "tp" \
        "--parallelism.data_parallel_shard_degree 4" \
        "--parallelism.tensor_parallel_degree 2"
}
test_a
test_b
