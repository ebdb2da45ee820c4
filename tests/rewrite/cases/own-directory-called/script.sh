#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
SCRIPT_DIR="$( cd -- "$( dirname -- "${BASH_SOURCE[0]}" )" &> /dev/null && pwd )"
export NCCL_DEBUG=WARN
bash "${SCRIPT_DIR}/train/run.sh" --name "${USER:-me}"
