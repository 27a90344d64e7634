#!/bin/sh
STATE=${STATE:-/var/run/app}

log() { printf '%s: %s\n' "$(basename "$0" .sh)" "$1"; }
is_running() { [ -f "$STATE/pid" ]; }

if is_running; then
    log "running"
else
    log "stopped"
    exit 3
fi
