#!/bin/bash
exec make -s train MBZ=@mbs|2@
