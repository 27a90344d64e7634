#!/bin/sh
. bin/lib.sh
is_running && die "already running"
mkdir -p "$STATE" || die "no state folder"
echo $$ > "$STATE/pid"
log started
