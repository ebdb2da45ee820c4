#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The classifier against rg and grep: see classify.py. BYTES, DIR and STRICT=1 may be set.
set -e
build=${1:-build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
cd "$(dirname "$0")/../.."
make -s BUILD="$build" "$build/bench/bench_classify"
exec "${PYTHON:-/usr/bin/python3}" tests/bench/classify.py "$build"
