#!/bin/sh
# usage: backup.sh FROM TO
# Copies every *.txt file of FROM, and of the folders in it, into TO, with its path.
from=$1
to=$2

for file in $(find $from -name '*.txt'); do
    name=${file#$from/}
    mkdir -p $to/$(dirname $name)
    cp $file $to/$name
done
echo done
