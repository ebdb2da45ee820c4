# SPDX-License-Identifier: Apache-2.0
COMMON=(--num-layers 32 --micro-batch-size 4 --global-batch-size 128)
