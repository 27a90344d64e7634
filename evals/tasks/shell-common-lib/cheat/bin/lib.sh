STATE=${STATE:-/var/run/app}
log() { printf '%s: %s\n' "$(basename "$0" .sh)" "$1"; }
die() { log "$1" >&2; exit 1; }
is_running() { [ -f "$STATE/pid" ]; }
