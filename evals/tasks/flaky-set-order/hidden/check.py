import os
import subprocess
import sys

CASES = """
from plans.plan import plan

assert plan({"deploy": ["test", "build"], "test": [], "build": []}) == ["build", "test", "deploy"]
assert plan({"z": [], "a": ["z"], "m": [], "b": ["m"]}) == ["m", "b", "z", "a"]
assert plan({"b": ["x"], "c": []}) == ["c", "x", "b"]
tasks = {"a": ["b"], "b": ["c"], "c": ["b"], "free": [], "d": ["d"]}
try:
    plan(tasks)
except ValueError as error:
    assert str(error) == "b,c,d", str(error)
else:
    raise AssertionError
assert tasks["a"] == ["b"]
assert plan({}) == []
"""
for seed in ("1", "2", "3"):
    run = [sys.executable, "-S", "-B", "-c", CASES]
    done = subprocess.run(run, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
print("PASS")
