#!/bin/sh
cp -r "$1" "$2"
echo done
