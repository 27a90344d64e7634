fail() { echo "$1"; exit 1; }
PATH=/usr/bin:/bin:$PATH
git -c core.fsmonitor= -c core.hooksPath=/dev/null log --format=%s > log.txt || fail "no history"
test "$(cat log.txt)" = 'Add Stack.peek
Begin' || fail "history: $(cat log.txt)"
git show --name-only --format= HEAD > names.txt
test "$(cat names.txt)" = structures/stack.py || fail "committed: $(cat names.txt)"
git show HEAD:structures/stack.py > committed.py
grep -q 'write more' committed.py && fail "the user's line was committed"
grep -q 'def peek' committed.py || fail "peek is not committed"
grep -q 'write more' structures/stack.py || fail "the user's line in stack.py is gone"
grep -q 'TODO slow' structures/queue.py || fail "the user's change in queue.py is gone"
git diff --cached --quiet || fail "something is staged"
cat > probe.py <<'END'
import committed
from structures.stack import Stack

for kind in (Stack, committed.Stack):
    stack = kind()
    stack.push(1)
    stack.push(2)
    assert (stack.peek(), stack.peek(), stack.pop(), stack.peek()) == (2, 2, 2, 1)
    stack.pop()
    try:
        stack.peek()
    except IndexError:
        continue
    raise AssertionError("peek of nothing")
END
python3 -S -B probe.py || fail probe
echo PASS
