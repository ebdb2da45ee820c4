#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The classifier against rg and grep: see classify.py. BYTES, DIR and STRICT=1 may be set.
exec "${PYTHON:-/usr/bin/python3}" "$(dirname "$0")/classify.py" "${1:-build}"
