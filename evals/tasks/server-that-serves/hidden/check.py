import json
import socket
import subprocess
import sys
import time
import urllib.request

commands = json.load(open("_turn.json"))["commands"]
assert any("serve" in command for command in commands), "the server was never started"
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
server = subprocess.Popen([sys.executable, "-S", "serve.py", str(port)], stderr=subprocess.DEVNULL)


def get(path):
    until = time.monotonic() + 10
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as reply:
                return reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            assert time.monotonic() < until and server.poll() is None, "it does not serve"
            time.sleep(0.02)


try:
    assert [get("/count"), get("/health"), get("/count"), get("/x"), get("/count")] == ["1", "ok", "2", 404, "3"]
finally:
    server.kill()
print("PASS")
