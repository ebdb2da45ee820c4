MODEL_ARGS=(
    --num-layers @layers@
    --hidden-size @hidden@
    --num-attention-heads @heads@
)
