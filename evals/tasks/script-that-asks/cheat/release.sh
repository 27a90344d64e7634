#!/bin/sh
version=$(cat VERSION)
next=$((version + 1))
echo "$next" > VERSION
echo "Version $next is out." > ANNOUNCEMENT
echo "released $next"
