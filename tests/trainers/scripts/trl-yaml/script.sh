#!/bin/bash
trl @kind|sft@ --config conf.yaml @extra|@
