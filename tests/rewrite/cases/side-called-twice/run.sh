python3 pretrain_gpt.py --seed ${SEED:-0} --micro-batch-size 4
