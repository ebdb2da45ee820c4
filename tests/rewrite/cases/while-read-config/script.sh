#!/bin/bash
ARGS=()
while read -r flag value; do
    [[ -z "$flag" || "$flag" == \#* ]] && continue
    ARGS+=( "$flag" ${value:+"$value"} )
done <<'FLAGS'
# model
--num-layers 12
--micro-batch-size 4
--bf16
FLAGS
python pretrain_gpt.py "${ARGS[@]}"
