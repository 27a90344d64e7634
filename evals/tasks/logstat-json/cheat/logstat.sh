#!/bin/sh
# usage: logstat.sh [--json] [FILE...]
if [ "$1" = --json ]; then
    shift
    cat "$@" | python3 -c 'import collections, json, sys; c = collections.Counter(l.split()[1] for l in sys.stdin); print(json.dumps({"levels": dict(sorted(c.items())), "lines": sum(c.values())}, separators=(",", ":")))'
    exit
fi
cat "$@" | awk '{ count[$2]++ } END { for (level in count) print level, count[level] }' | sort
