#!/bin/sh
# usage: release.sh [--yes]
# Writes the next version and a line for the changes. --yes answers every question with yes.
if [ "${1-}" != --yes ] && [ ! -t 0 ]; then
    echo "release.sh: no terminal; use --yes" >&2
    exit 3
fi
all=${1-}

ask() {
    if [ "$all" = --yes ]; then
        answer=y
    else
        printf '%s [y/n] ' "$1"
        read -r answer
    fi
}

version=$(cat VERSION)
next=$((version + 1))
ask "Release $next?"
[ "$answer" = y ] || exit 1
ask "Announce it?"
echo "$next" > VERSION
[ "$answer" = y ] && echo "Version $next is out." > ANNOUNCEMENT
echo "released $next"
