#!/bin/bash
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
NAME=$(basename $HERE)
python3 pretrain_gpt.py --micro-batch-size 4 --name ${HERE##*/}
