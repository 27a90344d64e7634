#!/bin/sh
set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/from/a b"
echo 1 > "$work/from/a b/my file.txt"
sh backup.sh "$work/from" "$work/to" > /dev/null
test -f "$work/to/a b/my file.txt"
echo ok
