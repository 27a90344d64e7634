fail() { echo "$1"; exit 1; }
test "$(cat VERSION)" = 7 || fail "the release was not made: $(cat VERSION)"
test "$(cat ANNOUNCEMENT)" = "Version 7 is out." || fail "no announcement"
out=$(sh release.sh < /dev/null 2> err); test $? = 3 || fail "status without a terminal"
test -z "$out" || fail "it asks without a terminal"
test "$(cat err)" = "release.sh: no terminal; use --yes" || fail "text: $(cat err)"
printf 'y\ny\n' | sh release.sh > /dev/null 2>&1; test $? = 3 || fail "a pipe is no terminal"
test "$(cat VERSION)" = 7 || fail "it changed something"
out=$(sh release.sh --yes < /dev/null) || fail "--yes"
case $out in *"released 8") ;; *) fail "said $out" ;; esac
test "$(cat VERSION) $(cat ANNOUNCEMENT)" = "8 Version 8 is out." || fail "release 8"
python3 -S -B - <<'END' || fail "on a terminal"
import os, pty, sys

pid, terminal = pty.fork()
if pid == 0:
    os.execvp("sh", ["sh", "release.sh"])
os.write(terminal, b"y\nn\n")
try:
    while os.read(terminal, 1000):
        pass
except OSError:
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
test "$(cat VERSION)" = 9 || fail "on a terminal it released $(cat VERSION)"
grep -q 8 ANNOUNCEMENT || fail "it announced against a no"
echo PASS
