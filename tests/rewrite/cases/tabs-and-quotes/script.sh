#!/bin/bash
python3	train.py	"--colocate"	"--max-tokens-per-gpu"	'8192'	--rollout-batch-size	"32"
