#!/bin/sh
. bin/lib.sh
is_running && log running && exit
log stopped
exit 3
