#!/bin/bash
gen() {
  cat <<EOF
#!/bin/bash
python pretrain_gpt.py --micro-batch-size $1 --seq-length $2
EOF
}
gen 4 4096 > a.sh
gen 8 2048 > b.sh
bash a.sh && bash b.sh
