#!/bin/bash
MBS=4
NODES=2
cat > run_node.sh <<EOF
#!/bin/bash
export RANK=\$SLURM_PROCID
ARGS="--micro-batch-size $MBS --global-batch-size $((MBS * NODES * 8))"
torchrun --nnodes $NODES --node_rank \$RANK pretrain_gpt.py \$ARGS --save "/ckpt/mbs$MBS"
EOF
chmod +x run_node.sh
srun ./run_node.sh
