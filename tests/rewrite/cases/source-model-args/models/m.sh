MODEL_ARGS=(
   --swiglu
   --num-layers 36
   --micro-batch-size 4
)
