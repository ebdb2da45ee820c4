#!/bin/bash
CONFIG=${CONFIG:-train.yaml}
axolotl train "$CONFIG" --wandb-project none @extra|@
