#!/bin/bash
MODEL_NAME=m
BATCH_SIZE=8
ACCUMULATION_STEPS=2
TASKS=( 'sft_a' 'sft_b' )
TASK=${TASKS[0]}
COMMAND="srun -l python experiments/${TASK}_train_hf.py \
    --model_name_or_path ${MODEL_NAME} \
    --per_device_train_batch_size ${BATCH_SIZE} \
    --per_device_eval_batch_size ${BATCH_SIZE} \
    --gradient_accumulation_steps ${ACCUMULATION_STEPS}"

if [[ "$TASK" == "sft_a" ]] || [[ "$TASK" == "x" ]]; then
    COMMAND+=" --hierarchical False"
fi
COMMAND+=" && python statistics.py"
# run
eval $COMMAND
