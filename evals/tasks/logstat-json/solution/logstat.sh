#!/bin/sh
# usage: logstat.sh [--json] [FILE...]
# Counts the lines of logs by their level: the second word of a line. Without a file it reads stdin.
json=no
case ${1-} in
    --json) json=yes; shift ;;
    --) shift ;;
    -?*) echo "usage: logstat.sh [--json] [FILE...]" >&2; exit 2 ;;
esac
counted=$(cat "$@" | awk '{ count[$2]++ } END { for (level in count) print level, count[level] }' | sort)
if [ $json = no ]; then
    [ -z "$counted" ] || printf '%s\n' "$counted"
    exit 0
fi
printf '%s\n' "$counted" | awk '
    NF == 2 {
        gsub(/\\/, "\\\\", $1)
        gsub(/"/, "\\\"", $1)
        all = all (all == "" ? "" : ",") "\"" $1 "\":" $2
        lines += $2
    }
    END { printf "{\"levels\":{%s},\"lines\":%d}\n", all, lines }'
