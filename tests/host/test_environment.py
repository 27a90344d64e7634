"""A child learns nothing secret from its environment, and everything it needs."""

import os
import subprocess
import sys

import pytest

from dragoman.host.environment import child_environment

CANARY = "canary-5f1c"

SECRETS = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET",
    "AZURE_OPENAI_API_KEY",
    "CI_JOB_JWT",
    "DOCKER_AUTH_CONFIG",
    "DRAGOMAN_OPENAI_API_KEY",
    "DRAGOMAN_TOKEN",
    "GEMINI_API_KEY",
    "GH_TOKEN",
    "GITHUB_PAT",
    "GITHUB_TOKEN",
    "GOOGLE_API_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GROQ_API_KEY",
    "HF_TOKEN",
    "MISTRAL_API_KEY",
    "MYSQL_PWD",
    "OPENAI_API_KEY",
    "OPENAI_API_KEY_2",
    "OPENAI_APIKEY",
    "OPENROUTER_API_KEY",
    "PGPASSWORD",
    "SECRET_KEY",
    "SOMETHING_PASSWORD",
    "TOKEN",
    "XAI_API_KEY",
    "npm_config__authToken",
    "openai_api_key",
]

HARMLESS = {
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "32000",
    "DRAGOMAN_HOME": "/home/someone/.dragoman",
    "DRAGOMAN_TREE": "0011223344556677",
    "HOME": "/home/someone",
    "HTTPS_PROXY": "http://user:password@proxy:3128",
    "LANG": "C.UTF-8",
    "OLDPWD": "/",
    "OLLAMA_HOST": "http://localhost:11434",
    "PATH": "/usr/bin",
    "PWD": "/",
    "PYTHONPATH": "/work",
    "SSH_AUTH_SOCK": "/run/agent",
    "TERM": "xterm",
    "VIRTUAL_ENV": "/venv",
    "http_proxy": "http://user:password@proxy:3128",
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_does_not_reach_a_child(name: str) -> None:
    assert child_environment({name: CANARY, "PATH": "/usr/bin"}) == {"PATH": "/usr/bin"}


def test_what_is_no_secret_reaches_it_unchanged() -> None:
    assert child_environment(HARMLESS) == HARMLESS


@pytest.mark.parametrize(
    "url", [f"postgres://user:{CANARY}@host/db", f"redis://:{CANARY}@host", f"amqp://u:{CANARY}@h/"]
)
def test_a_password_inside_a_url_does_not_reach_a_child(url: str) -> None:
    assert child_environment({"DATABASE_URL": url}) == {}


@pytest.mark.parametrize("url", ["postgres://host:5432/db", "https://user@host/", "https://host/a:b@c", "a:b@c"])
def test_a_url_without_a_password_does(url: str) -> None:
    assert child_environment({"DATABASE_URL": url}) == {"DATABASE_URL": url}


def test_a_secret_that_was_asked_for_by_name_is_given() -> None:
    base = {"OPENAI_API_KEY": "old", "GITHUB_TOKEN": "hidden", "LANG": "C"}
    given = child_environment(base, {"OPENAI_API_KEY": "new", "LANG": "de"})
    assert given == {"OPENAI_API_KEY": "new", "LANG": "de"}
    assert base == {"OPENAI_API_KEY": "old", "GITHUB_TOKEN": "hidden", "LANG": "C"}


def test_no_canary_is_seen_by_a_real_child() -> None:
    environment = child_environment(dict(os.environ) | dict.fromkeys(SECRETS, CANARY) | {"MARKER": "seen"})
    code = "import os; print(dict(os.environ))"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "seen" in done.stdout
    assert CANARY not in done.stdout
