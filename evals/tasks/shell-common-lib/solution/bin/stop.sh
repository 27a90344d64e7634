#!/bin/sh
. "$(cd "$(dirname "$0")" && pwd)/lib.sh"

is_running || die "not running"
rm "$STATE/pid"
log stopped
