import contextlib
import io
import json
import os
import pathlib

from todo.cli import main

os.environ["TODO_FILE"] = "check.json"
pathlib.Path("check.json").write_text(json.dumps([{"id": 3, "text": "old"}]))


def call(*words):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = main(list(words))
        except SystemExit as end:
            code = end.code
    return code, out.getvalue().splitlines()


assert call("add", "late", "--due", "2026-12-01") == (0, ["4"])
assert call("add", "plain") == (0, ["5"])
assert call("add", "soon", "--due", "2026-03-01") == (0, ["6"])
for wrong in ("tomorrow", "2026-02-30", "01.03.2026", ""):
    assert call("add", "bad", "--due", wrong)[0] == 2, wrong
expected = ["6 soon (due 2026-03-01)", "4 late (due 2026-12-01)", "3 old", "5 plain"]
assert call("list") == (0, expected), call("list")
assert call("done", "6")[0] == 0 and call("done", "6")[0] == 1
assert call("list") == (0, expected[1:])
assert "due" in "".join(path.read_text() for path in pathlib.Path("tests").rglob("*.py")), "no test was added"
print("PASS")
