fail() { echo "$1"; exit 1; }
root=$PWD
ln -s "$root/bin" "$root/linked"
export STATE="$root/st ate"
mkdir "$root/my dir"
for start in "$root" "$root/my dir" /; do
    for bin in "$root/bin" "$root/linked"; do
        cd "$start" || fail cd
        test "$(sh "$bin/status.sh")" = "status: stopped" || fail "status from $start"
        sh "$bin/status.sh" > /dev/null; test $? = 3 || fail "status code"
        test "$(sh "$bin/stop.sh" 2>&1)" = "stop: not running" || fail stop
        sh "$bin/stop.sh" > /dev/null 2>&1; test $? = 1 || fail "stop code"
        test "$(sh "$bin/start.sh")" = "start: started" || fail start
        test "$(sh "$bin/start.sh" 2>&1 > /dev/null)" = "start: already running" || fail "start again"
        test "$(sh "$bin/status.sh")" = "status: running" || fail "status running"
        test "$(sh "$bin/stop.sh")" = "stop: stopped" || fail "stop again"
    done
done
cd "$root/bin" && test "$(sh ./status.sh; sh status.sh)" = "status: stopped
status: stopped" || fail "from bin itself"
for script in start stop status; do
    grep -q '^ *\(log\|die\|is_running\) *()' "$script.sh" && fail "$script.sh still has a copy"
    grep -q 'lib\.sh' "$script.sh" || fail "$script.sh does not read lib.sh"
done
echo PASS
