#!/bin/sh
printf '%s\n' "$1" | sed 's/[^A-Za-z]\{1,\}/-/g' | tr A-Z a-z
