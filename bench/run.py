"""`python -m bench.run`: what `dragoman run` adds to an agent's turn, in CPU time of its own.

The agent is a small one that answers at once, so that nearly everything measured is ours. Children are counted apart:
the kernel adds up what a process used, and what the processes it waited for used. Exit status: 0 the promise is met,
1 it is missed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Final

REPETITIONS: Final = 15
PROMISE_MS: Final = 150.0
"""CPU time, user and system, that one `dragoman run` may use itself."""

# Answers a v1 client with nothing but the standard library: its own cost is a bare interpreter.
AGENT: Final = """
import json, sys
def say(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    method, id = asked.get("method"), asked.get("id")
    if method == "initialize":
        say(id=id, result={"protocolVersion": 1, "agentCapabilities": {}})
    elif method == "session/new":
        say(id=id, result={"sessionId": "s"})
    elif method == "session/prompt":
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hello"}}
        say(method="session/update", params={"sessionId": "s", "update": update})
        say(id=id, result={"stopReason": "end_turn"})
"""
# Runs the command in this interpreter, then tells what it and its children used.
MEASURED: Final = """
import json, os, resource, sys
sys.argv = ["dragoman", *json.loads(sys.argv[1])]
from dragoman.cli.main import main
code = main()
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
told = [code, *((each.ru_utime + each.ru_stime) * 1000 for each in used)]
os.write(int(os.environ["TOLD"]), json.dumps(told).encode())
"""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.run", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    repetitions = 5 if parser.parse_args(arguments).quick else REPETITIONS
    with tempfile.TemporaryDirectory() as folder:
        agent = Path(folder, "agent.py")
        agent.write_text(AGENT)
        missed = False
        for what, options in {"text": [], "json": ["--format", "json"]}.items():
            used = [measure(folder, agent, options) for _ in range(repetitions + 1)][1:]
            ours, theirs = median(own for own, _ in used), median(child for _, child in used)
            missed = missed or ours > PROMISE_MS
            word = "MISSED" if ours > PROMISE_MS else "met"
            print(
                f"run, as {what}: {ours:5.1f} ms CPU of its own (from {min(used)[0]:.1f}), the agent {theirs:.1f} ms;"
                f" at most {PROMISE_MS:g}: {word}",
                flush=True,
            )
    return int(missed)


def measure(folder: str, agent: Path, options: list[str]) -> tuple[float, float]:
    """The CPU time of one run, in milliseconds: its own, and its agent's."""
    told, tell = os.pipe()
    # As installed: with bytecode, which the first run, off the record, writes.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    given = ["run", "hi", "--cwd", folder, *options, "--", sys.executable, "-S", str(agent)]
    subprocess.run(
        [sys.executable, "-c", MEASURED, json.dumps(given)],
        env={**plain, "PYTHONPYCACHEPREFIX": f"{folder}/bytecode", "TOLD": str(tell), "DRAGOMAN_HOME": folder},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[tell],
        check=True,
        timeout=60,
    )
    os.close(tell)
    with open(told, "rb") as file:
        code, own, child = json.loads(file.read())
    if code != 0:
        raise SystemExit(f"dragoman run exited with {code}")
    return own, child


if __name__ == "__main__":
    sys.exit(main())
