#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
here=`dirname $0`
. $here/lib/launch.sh
launch 8
