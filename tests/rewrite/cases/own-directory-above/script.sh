#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
ROOT="$(cd "$(dirname "$(readlink -f "$0")")/." && pwd)"
source "$ROOT/conf/defaults.env"
exec python3 "$ROOT/pretrain_gpt.py" --micro-batch-size "$MBS" --global-batch-size 64
