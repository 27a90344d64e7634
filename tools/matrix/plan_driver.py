"""Start a client of the interop tests with one prompt as its plan: `plan_driver.py CLIENT … -- AGENT …`."""

import json
import os
import subprocess
import sys


def main() -> int:
    """Play the plan, and return how the client has ended."""
    at = sys.argv.index("--")
    client, agent = sys.argv[1:at], sys.argv[at + 1 :]
    step = {"prompt": "hello", "permission": "reject_once"}
    if "client_agentao" in client[-1]:  # it is told in its arguments
        plan = json.dumps([{"prompt": "hello", "policy": "reject_all"}])
        return subprocess.run([*client, plan, os.getcwd(), *agent], check=False).returncode
    task = {"plan": [step], "cwd": os.getcwd(), "agent": agent, "env": dict(os.environ)}
    done = subprocess.run(client, input=json.dumps(task) + "\n", text=True, check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
