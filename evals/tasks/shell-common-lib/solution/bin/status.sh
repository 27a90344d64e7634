#!/bin/sh
. "$(cd "$(dirname "$0")" && pwd)/lib.sh"

if is_running; then
    log "running"
else
    log "stopped"
    exit 3
fi
