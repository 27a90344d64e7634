"""Which command lines start an agent here, and which have it carried elsewhere."""

from pathlib import Path

import pytest

from dragoman.client.remote_launch import remote_launch_reason

HERE = [
    ["gemini", "--acp"],
    ["npx", "-y", "@google/gemini-cli@0.61.0", "--acp"],
    ["uvx", "--from", "mistral-vibe", "vibe-acp"],
    ["sudo", "codex-acp"],
    ["sudo", "-n", "codex-acp"],
    ["uvx", "--from", "git+https://example.org/agent", "agent"],
    ["agent", "--proxy", "http://127.0.0.1:3128"],
    ["codex-acp", "-c", "base_url=https://example.org/v1"],
    ["bash", "-c", "cd /srv && exec gemini --acp"],
    ["python3", "-c", "import agent\nagent.run(connect=True)"],
    ["python3", "-m", "dragoman.cli.main", "acp"],
    ["opencode", "acp", "--base-url", "http://127.0.0.1:8000/v1"],
    ["/home/ssh/agent", "--provider", "aws"],
    ["agent", "--language", "et"],
    ["agent", "--append-system-prompt", "Lis et corrige le projet modal"],
    ["agent", "--model", "modal", "--effort", "high"],
    ["gh", "copilot", "--acp"],
    ["uvx", "git+ssh://git@example.org/agent"],
    ["agent", "file:///srv/settings.json"],
    ["agent", "--model", "ollama/llama3:70"],
    ["agent", "--host", "127.0.0.1", "--port", "8080"],
    ["agent", "--hostname=0.0.0.0"],
    ["agent", "--listen", "0.0.0.0:8080"],
    ["agent", "localhost:11434"],
    ["agent", "[::1]:11434"],
    ["agent", "--server", "stdio"],
    ["npx", "-y", "--registry", "https://example.org", "agent"],
]
ELSEWHERE = [
    ["ssh", "host", "gemini", "--acp"],
    ["/usr/bin/ssh", "host", "agent"],
    ["SSH.EXE", "host", "agent"],
    ["env", "-i", "A=b", "ssh", "host", "agent"],
    ["sudo", "-u", "x", "bash", "-c", "exec ssh host agent"],
    ["timeout", "60", "docker", "exec", "-i", "box", "agent"],
    ["podman", "run", "-i", "image"],
    ["kubectl", "exec", "-i", "pod", "--", "agent"],
    ["gcloud", "compute", "ssh", "vm", "--", "agent"],
    ["bwrap", "--ro-bind", "/", "/", "gemini", "--acp"],
    ["chroot", "/srv/root", "agent"],
    ["socat", "-", "TCP:host:1"],
    ["dragoman", "connect", "https://agents.example.org"],
    ["/opt/bin/dragoman", "--trace", "t", "connect", "https://agents.example.org"],
    ["python3", "-P", "-m", "dragoman.cli.main", "connect", "https://agents.example.org"],
    ["python3", "-m", "dragoman", "connect", "https://agents.example.org"],
    ["uvx", "dragoman", "connect", "https://agents.example.org"],
    ["python3", "bridge.py", "dragoman", "connect", "https://agents.example.org"],
    ["python3", "/opt/dragoman/cli/main.py", "connect", "https://agents.example.org"],
    ["sh", "-c", "dragoman connect https://agents.example.org"],
    ["dragoman", "bridge", "--", "ssh", "host", "agent"],
    ["python3", "-c", "import os; os.execvp('ssh', ['ssh', 'host', 'agent'])"],
    ["node", "relay.js", "wss://agents.example.org"],
    ["rsync-like", "--rsh=ssh"],
    ["sudo", "-u", "agent", "codex-acp"],
    ["sudo", "-nuagent", "codex-acp"],
    ["sudo", "--user=agent", "codex-acp"],
    ["doas", "-u", "agent", "codex-acp"],
    ["su", "agent", "-c", "codex-acp"],
    ["env", "A=b", "runuser", "-u", "agent", "codex-acp"],
    ["sh", "-c", "exec sudo -u agent codex-acp"],
    ["setpriv", "--reuid=agent", "codex-acp"],
    ["systemd-run", "--user", "--pty", "-p", "ProtectHome=yes", "codex-acp"],
    ["npx", "-y", "mcp-remote", "https://agents.example.org/acp"],
    ["npx", "-y", "supergateway", "--sse", "https://agents.example.org/acp"],
    ["relay", "--url=https://agents.example.org/acp"],
    ["nc.openbsd", "host", "1"],
    ["microk8s.kubectl", "exec", "pod", "agent"],
    ["bash", "-c", "s''sh host agent"],
    ["env", "-Sssh host agent"],
    ["et", "host"],
    ["/usr/bin/et", "host"],
    ["env", "A=b", "et", "host"],
    ["sh", "-c", "exec et host agent"],
    ["aws", "ecs", "execute-command", "--interactive", "--command", "agent"],
    ["aws", "--region", "eu-west-1", "ssm", "start-session"],
    ["sh", "-c", "aws ecs 'execute-command' --command agent"],
    ["az", "container", "exec", "--exec-command", "agent"],
    ["az", "vm", "run-command", "invoke"],
    ["devpod", "up", "agent"],
    ["modal", "shell", "agent"],
    ["gcloud", "workstations", "start-tcp-tunnel", "station", "22"],
    ["gh", "cs", "exec"],
    ["gh", "codespace", "cp"],
    ["fly", "console", "-C", "agent"],
    ["flyctl", "machine", "exec", "1", "agent"],
    ["nomad", "alloc", "exec", "1", "agent"],
    ["heroku", "run", "agent"],
    ["incus", "exec", "box", "agent"],
    ["tsh", "ssh", "host", "agent"],
    ["teleport", "join", "openssh"],
    ["coder", "ssh", "space"],
    ["distrobox", "enter", "box"],
    ["railway", "run", "agent"],
    ["vagrant", "ssh"],
    ["codex", "sandbox", "linux", "agent"],
    ["sudo", "--chroot=/srv", "agent"],
    ["relay", "tcp://agents.example.org:99"],
    ["relay", "grpc://agents.example.org"],
    ["relay", "TLS://agents.example.org"],
    ["relay", "--server", "agents.example.org:99"],
    ["relay", "--server=agents.example.org:99"],
    ["relay", "--remote-host", "box"],
    ["relay", "--host=agents.example.org"],
    ["relay", "agents.example.org:8080"],
    ["relay", "me@box:2222"],
    ["relay", "192.0.2.7:99"],
    ["relay", "[2001:db8::1]:99"],
    ["relay", "-v", "https://agents.example.org"],
    ["relay", "--verbose", "agents.example.org:99"],
    ["relay", "--", "https://agents.example.org"],
    ["bash", "-c", "exec 3<>/dev/tcp/host/99; cat <&3"],
    ["lima", "codex-acp"],
    ["srt", "codex-acp"],
    ["adb", "shell", "agent"],
    ["sh", "-c", "$AGENT"],
    ["sh", "-c", "`cat agent`"],
    ["agent", *["x"] * 300],
]


@pytest.mark.parametrize("command", HERE, ids=" ".join)
def test_an_agent_that_works_here(command: list[str]) -> None:
    assert remote_launch_reason(command, {"PATH": "/nowhere"}) == ""


@pytest.mark.parametrize("command", ELSEWHERE, ids=lambda command: " ".join(command)[:60])
def test_an_agent_that_is_carried_elsewhere(command: list[str]) -> None:
    assert remote_launch_reason(command, {"PATH": "/nowhere"})


def test_a_link_to_a_carrier_is_one(tmp_path: Path) -> None:
    (tmp_path / "ssh").write_text("#!/bin/sh\n")
    (tmp_path / "ssh").chmod(0o755)
    (tmp_path / "box").symlink_to("ssh")
    assert remote_launch_reason(["box", "agent"], {"PATH": str(tmp_path)}) == "ssh takes the agent to another machine"
