"""A child learns nothing secret from its environment, and everything it needs."""

import os
import subprocess
import sys

import pytest

from dragoman.host import environment as environment_module
from dragoman.host.environment import child_environment, keep_back, proxies_of
from dragoman.host.secrets import confined_environment

CANARY = "canary-5f1c"

SECRETS = [
    "ACCESSKEY",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "API_KEY_PROD",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET",
    "AZURE_OPENAI_API_KEY",
    "AZURE_STORAGE_CONNECTION_STRING",
    "BEARER",
    "CI_JOB_JWT",
    "DB_CREDS",
    "DB_PASS",
    "DB_PASS_2",
    "DJANGO_SALT",
    "DOCKER_AUTH_CONFIG",
    "DSN",
    "DRAGOMAN_OPENAI_API_KEY",
    "DRAGOMAN_TOKEN",
    "GEMINI_API_KEY",
    "GEMINI_API_KEYS",
    "GH_TOKEN",
    "GITHUB_OAUTH",
    "GITHUB_PAT",
    "GITHUB_TOKEN",
    "GPG_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GROQ_API_KEY",
    "HF_TOKEN",
    "MISTRAL_API_KEY",
    "MNEMONIC",
    "MYSQL_PWD",
    "OPENAI_API_KEY",
    "OPENAI_API_KEY_2",
    "OPENAI_APIKEY",
    "OPENROUTER_API_KEY",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "PAT",
    "PGPASSWORD",
    "PRIVATEKEY",
    "REFRESH_TOKENS",
    "SECRETS",
    "SECRET_KEY",
    "SENTRY_DSN",
    "SESSION_COOKIES",
    "SLACK_WEBHOOK",
    "SLACK_WEBHOOK_URL",
    "SMTP_PASS",
    "SOMETHING_PASSWORD",
    "SSHPASS",
    "TOKEN",
    "TOKENS_JSON",
    "VAULT_UNSEAL_KEYS",
    "WALLET_SEED",
    "WALLET_SEED_PHRASE",
    "XAI_API_KEY",
    "npm_config__authToken",
    "openai_api_key",
]

HARMLESS = {
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "32000",
    "CURL_CA_BUNDLE": "/etc/ssl/certs/ca.pem",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/1000/bus",
    "DRAGOMAN_HOME": "/home/someone/.dragoman",
    "DRAGOMAN_TREE": "0011223344556677",
    "HOME": "/home/someone",
    "GIT_ASKPASS": "/usr/lib/git/askpass",
    "GIT_AUTHOR_NAME": "Someone",
    "GIT_CONFIG_KEY_0": "core.pager",
    "GPG_KEY": "A035C8C19219BA821ECEA86B64E628F8D684696D",
    "HTTPS_PROXY": "http://proxy:3128",
    "KEYBOARD_LAYOUT": "de",
    "KEYTIMEOUT": "1",
    "LANG": "C.UTF-8",
    "LESSKEY": "/home/someone/.less",
    "LS_COLORS": "rs=0:di=01;34:*.key=00;33:*.token=00;36",
    "MAX_TOKENS": "4096",
    "MONKEY": "see",
    "NODE_EXTRA_CA_CERTS": "/etc/ssl/own.crt",
    "NO_PROXY": "localhost,127.0.0.1",
    "OLDPWD": "/",
    "OLLAMA_HOST": "http://localhost:11434",
    "PATH": "/usr/bin:/opt/sk-learn-0123456789-playground/bin",
    "PIP_INDEX_URL": "https://someone@packages.example.org/simple",
    "PWD": "/",
    "PYTHONHASHSEED": "0",
    "PYTHONPATH": "/project",
    "RANDOM_SEED": "42",
    "REQUIRE_TOKEN": "true",
    "SSH_AUTH_SOCK": "/run/agent",
    "SSL_CERT_FILE": "/etc/ssl/cert.pem",
    "TERM": "xterm",
    "TOKENIZERS_PARALLELISM": "false",
    "TRAFFIC_BYPASS": "lan",
    "VIRTUAL_ENV": "/venv",
    "XAUTHORITY": "/home/someone/.Xauthority",
    "XKB_DEFAULT_OPTIONS": "caps:escape",
    "http_proxy": "http://proxy:3128",
}

# Under a name that says nothing.
SECRET_VALUES = [
    "sk-ant-api03-0123456789abcdef0123",
    "sk-proj-0123456789abcdef0123",
    "ghp_0123456789abcdefghij0123456789abcdef",
    "github_pat_0123456789abcdefghij_0123456789",
    "glpat-0123456789abcdefghij",
    "xoxb-0123456789-abcdefghij",
    "AKIAABCDEFGHIJKLMNOP",
    "AIza0123456789abcdefghij0123456789abcde",
    "hf_0123456789abcdefghijABCDEF",
    "npm_0123456789abcdefghijABCDEF0123456789",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtZSJ9.c2lnbmF0dXJl",
    "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
    "Authorization: Bearer 0123456789abcdef",
    "https://0123456789abcdef0123@git.example.org/x.git",
    "jdbc:postgresql://host/db?user=me&password=hunter2",
    "Server=db;User Id=me;Password=hunter2;",
]


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_does_not_reach_a_child(name: str) -> None:
    assert child_environment({name: CANARY, "PATH": "/usr/bin"}) == {"PATH": "/usr/bin"}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_does_not_reach_a_confined_command(name: str) -> None:
    assert confined_environment({name: CANARY, "PATH": "/usr/bin"}, network=True) == {"PATH": "/usr/bin"}


def test_what_is_no_secret_reaches_it_unchanged() -> None:
    assert child_environment(HARMLESS) == HARMLESS


def test_a_word_that_only_looks_like_a_secret_reaches_a_confined_command() -> None:
    words = {
        "KEYBOARD_LAYOUT": "de",
        "TOKENIZERS_PARALLELISM": "true",
        "AUTHOR": "Someone",
        "HOTKEY": "F1",
        "PWD": "/x",
    }
    assert confined_environment(words) == words
    assert confined_environment({"AUTHORIZATION": CANARY, "KEYS": CANARY, "AUTH_TOKENIZED": CANARY}) == {}


@pytest.mark.parametrize("value", SECRET_VALUES)
def test_a_value_that_is_a_credential_does_not_reach_a_child(value: str) -> None:
    assert child_environment({"LOGIN": value, "PATH": "/usr/bin"}) == {"PATH": "/usr/bin"}
    assert confined_environment({"LOGIN": value, "PATH": "/usr/bin"}) == {"PATH": "/usr/bin"}


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (f"http://user:{CANARY}@proxy:3128", "http://proxy:3128"),
        (f"http://user:{CANARY}/{CANARY}@proxy:3128/", "http://proxy:3128/"),
        (f"user:{CANARY}@proxy:3128", "proxy:3128"),
        (f"socks5h://{CANARY}@proxy", "socks5h://proxy"),
    ],
)
def test_a_proxy_reaches_a_child_without_its_password(given: str, passed: str) -> None:
    assert child_environment({"HTTPS_PROXY": given, "all_proxy": given}) == {"HTTPS_PROXY": passed, "all_proxy": passed}
    assert CANARY not in str(confined_environment({"HTTPS_PROXY": given}))
    assert proxies_of({"HTTPS_PROXY": given, "PATH": "/usr/bin"}) == {"HTTPS_PROXY": given}


def test_a_name_that_the_configuration_calls_a_key_does_not_reach_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment_module, "_configured", set())
    base = {"LAB_ACCESS": CANARY, "PATH": "/usr/bin"}
    assert child_environment(base) == base
    keep_back(["LAB_ACCESS", ""])
    assert child_environment(base) == {"PATH": "/usr/bin"}
    assert confined_environment(base) == {"PATH": "/usr/bin"}
    assert child_environment(base, {"LAB_ACCESS": "named"}) == {"PATH": "/usr/bin", "LAB_ACCESS": "named"}


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
