#!/bin/bash
python pretrain_gpt.py $(<flags.txt) --bf16
