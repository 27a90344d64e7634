import copy
import json
import os
import pathlib
import subprocess
import sys

from service import settings

pathlib.Path("s.json").write_text(json.dumps({"http": {"port": 8000}}))
before = copy.deepcopy(settings.DEFAULTS)
load = settings.load
os.environ["SERVICE_HTTP_PORT"] = "1"
assert load("s.json")["http"] == {"port": 8000, "host": "localhost", "keep_alive": True}
found = load("s.json", {"SERVICE_HTTP_PORT": "9", "SERVICE_ACCESS_ADMINS": "ann , bob", "PATH": "/", "SERVICE_ACCESS_RATE": "2"})
assert found["http"]["port"] == 9 and type(found["http"]["port"]) is int
assert found["access"] == {"admins": ["ann", "bob"], "rate": 2.0} and type(found["access"]["rate"]) is float
for text, value in {"No": False, "0": False, "FALSE": False, "1": True, "yes": True}.items():
    assert load("s.json", {"SERVICE_HTTP_KEEP_ALIVE": text})["http"]["keep_alive"] is value, text
assert load("s.json", {"SERVICE_ACCESS_ADMINS": ""})["access"]["admins"] == []
for name, value in [("SERVICE_HTTP_PORT", "x"), ("SERVICE_HTTP_NOPE", "1"), ("SERVICE_NOPE", "1"), ("SERVICE_HTTP_KEEP_ALIVE", "2")]:
    try:
        load("s.json", {name: value})
    except settings.SettingsError as error:
        assert name in str(error)
    else:
        raise AssertionError(name)
assert settings.DEFAULTS == before
run = [sys.executable, "-S", "-m", "service.main", "s.json"]
shown = subprocess.run(run, capture_output=True, text=True, env={**os.environ, "SERVICE_HTTP_PORT": "77"})
assert shown.stdout == "localhost:77\n", (shown.stdout, shown.stderr)
assert "os.environ" not in pathlib.Path("service/settings.py").read_text()
print("PASS")
