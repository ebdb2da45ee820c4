#!/bin/bash
MODULE=${MODULE:-llama3}
CONFIG=${CONFIG:-llama3_8b}
torchrun --nproc_per_node=8 --rdzv_backend c10d --rdzv_endpoint="localhost:0" --local-ranks-filter 0 --role rank --tee 3 \
    -m torchtitan.train --module ${MODULE} --config ${CONFIG} \
    --training.num_tokens_per_microbatch_per_dp_rank @tokens|65536@ \
    --training.max_context_length @len|8192@ @extra|@ "$@"
