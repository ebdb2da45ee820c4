#!/bin/bash
exec nice -n 5 ionice -c 2 -n 7 taskset -c 0-31,64-95 setsid -w python3 train.py --max-tokens-per-gpu=8192 --actor-num-nodes 1
