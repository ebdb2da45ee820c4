#!/bin/bash
#SBATCH --nodes=1
MBS=4
cat > run_inner.sh <<EOF
#!/bin/bash
# --micro-batch-size 4
torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size $MBS --lr 1e-4 "\$@"
EOF
chmod +x run_inner.sh
srun bash run_inner.sh --bf16
