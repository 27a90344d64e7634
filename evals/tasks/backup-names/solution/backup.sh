#!/bin/sh
# usage: backup.sh FROM TO
# Copies every *.txt file of FROM, and of the folders in it, into TO, with its path.
from=$1
to=$2

find "$from" -name '*.txt' -exec sh -ec '
    from=$1
    to=$2
    shift 2
    for file do
        name=${file#"$from"/}
        mkdir -p "$to/$(dirname "./$name")"
        cp "$file" "$to/$name"
    done
' sh "$from" "$to" {} + || exit 1
echo done
