#!/bin/sh
. bin/lib.sh
is_running || die "not running"
rm "$STATE/pid"
log stopped
