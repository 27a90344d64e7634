import ast
import inspect
import logging
import os
import pathlib
import tempfile

from worker import files

seen = []
files.LOG.setLevel(logging.INFO)
files.LOG.addHandler(type("H", (logging.Handler,), {"emit": lambda self, record: seen.append(record.levelname)})())
assert list(inspect.signature(files.archive).parameters) == ["folder", "days", "now"]
assert inspect.signature(files.archive).parameters["now"].default is inspect.Parameter.empty
assert set(files.archive.__annotations__) == {"folder", "days", "now", "return"}
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    now = 1_000_000_000.0
    for file, age in (("b", 3), ("a", 9), ("new", 1), ("edge", 2)):
        (folder / file).write_text(file)
        os.utime(folder / file, (now - age * 86400, now - age * 86400))
    (folder / "sub").mkdir()
    os.utime(folder / "sub", (0, 0))
    assert files.archive(folder, 2, now) == ["a", "b"]
    assert sorted(path.name for path in folder.iterdir()) == ["archive", "edge", "new", "sub"]
    assert (folder / "archive" / "a").read_text() == "a"
    assert files.archive(folder, 2, now) == []
assert seen == ["INFO", "INFO"], seen
source = pathlib.Path("worker/files.py").read_text()
assert "print(" not in source and "os.path" not in source and "time.time" not in source
for node in ast.walk(ast.parse(source)):
    if isinstance(node, ast.FunctionDef):
        text = ast.get_docstring(node) or ""
        assert text and "\n" not in text and not text.split()[0].endswith("s"), node.name
unreleased = pathlib.Path("CHANGES.md").read_text().partition("## Unreleased")[2].partition("## 1.0")[0]
assert any(line.startswith("- `archive`") for line in unreleased.splitlines()), unreleased
print("PASS")
