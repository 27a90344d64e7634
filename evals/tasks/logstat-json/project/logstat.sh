#!/bin/sh
# usage: logstat.sh [FILE...]
# Counts the lines of logs by their level: the second word of a line. Without a file it reads stdin.
cat "$@" | awk '{ count[$2]++ } END { for (level in count) print level, count[level] }' | sort
