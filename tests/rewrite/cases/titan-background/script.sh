#!/bin/bash
BACKGROUND_MODE=0
if [[ "${1:-}" == "--background" ]]; then
    BACKGROUND_MODE=1
    shift
fi
TRAIN_LOCAL_BATCH_SIZE=4
TRAIN_SEQ_LEN=8192
DUMP_FOLDER=./out/lbs${TRAIN_LOCAL_BATCH_SIZE}
mkdir -p ${DUMP_FOLDER}/logs
DISTRIBUTED_ARGS=(
    --nproc_per_node 8
    --nnodes 1
)
TRAIN_ARGS=(
    --module cluster
    --config llama3_3b
    # 训练
    --training.local_batch_size=${TRAIN_LOCAL_BATCH_SIZE}
    --training.seq_len=${TRAIN_SEQ_LEN}
    --checkpoint.no-last-save-in-hf
)
if [[ ${BACKGROUND_MODE} -eq 1 ]]; then
    LOG_FILE="node-0_$(date +%y%m%d).log"
    nohup torchrun ${DISTRIBUTED_ARGS[@]} -m torchtitan.train ${TRAIN_ARGS[@]} "$@" > ${DUMP_FOLDER}/logs/${LOG_FILE} 2>&1 &
    wait
else
    torchrun ${DISTRIBUTED_ARGS[@]} -m torchtitan.train ${TRAIN_ARGS[@]} "$@"
    TRAIN_EXIT_CODE=$?
    if [[ ${TRAIN_EXIT_CODE} -eq 0 ]]; then
        python3 scripts/convert.py "${DUMP_FOLDER}"
    fi
fi
