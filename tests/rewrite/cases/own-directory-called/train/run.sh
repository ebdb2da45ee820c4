#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
MBS=4
python3 pretrain_gpt.py --micro-batch-size $MBS --global-batch-size 64 --seed 1
