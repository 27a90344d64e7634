#!/bin/sh
# usage: release.sh
# Writes the next version and a line for the changes.
version=$(cat VERSION)
next=$((version + 1))
printf 'Release %s? [y/n] ' "$next"
read -r answer
[ "$answer" = y ] || exit 1
printf 'Announce it? [y/n] '
read -r announce
echo "$next" > VERSION
[ "$announce" = y ] && echo "Version $next is out." > ANNOUNCEMENT
echo "released $next"
