fail() { echo "$1"; exit 1; }
test "$(git -c core.fsmonitor= -c core.hooksPath=/dev/null symbolic-ref --short HEAD)" = main || fail "another branch is checked out"
test "$(git -c core.fsmonitor= log -1 --format=%s)" = "Keep dots" || fail "the branch has moved"
test ! -e .git/BISECT_LOG || fail "a bisect is left open"
echo PASS
