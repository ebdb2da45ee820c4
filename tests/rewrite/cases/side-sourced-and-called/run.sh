python3 pretrain_gpt.py --micro-batch-size $MBS --global-batch-size $GBS
