#!/bin/bash
CFG=conf/qlora.yml
axolotl preprocess $CFG --debug
accelerate launch -m axolotl.cli.preprocess $CFG
axolotl train $CFG --micro-batch-size 4 --num-epochs 1
axolotl merge-lora $CFG --lora-model-dir=./out
