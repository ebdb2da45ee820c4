#!/bin/bash
tee run_node.sh <<'EOF' >/dev/null
#!/bin/bash
python pretrain_gpt.py --micro-batch-size 4 --seq-length 4096
EOF
srun bash run_node.sh
