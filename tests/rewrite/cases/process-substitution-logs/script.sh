#!/bin/bash
exec > >(tee -a script.log) 2>&1
python pretrain_gpt.py --micro-batch-size 4 > >(tee out.log) 2> >(tee err.log >&2)
