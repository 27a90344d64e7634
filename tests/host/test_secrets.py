"""Files that hold credentials are known by their place and by their name, and other files are not taken for them."""

import pytest

from dragoman.host.secrets import home_for, is_credential

HOME = "/home/someone"

CREDENTIALS = [
    "/p/.env",
    "/p/.ENV",
    "/p/.env.",
    "/p/.e\u200bnv",
    "/p/.env.local",
    "/p/.env.production",
    "/p/.env-staging",
    "/p/deploy/prod.env",
    "/p/.envrc",
    "/p/id_rsa",
    "/p/keys/id_ed25519",
    "/p/server.pem",
    "/p/tls.key",
    "/p/release.jks",
    "/p/cert.p12",
    "/p/.netrc",
    "/p/.pgpass",
    "/p/.npmrc",
    "/p/.pypirc",
    "/p/credentials.json",
    "/p/client_secret_12.apps.json",
    "/p/service-account.json",
    "/p/service_account_prod.json",
    "/p/serviceAccountKey.json",
    "/p/.git-credentials",
    "/p/.aws/credentials",
    "/p/.aws",
    "/p/.kube/config",
    "/p/.docker/config.json",
    "/p/.ssh/config",
    "/p/terraform.tfstate",
    "/p/.streamlit/secrets.toml",
    f"{HOME}/.ssh",
    f"{HOME}/.ssh/known_hosts",
    f"{HOME}/.bash_history",
    f"{HOME}/.config/gh/hosts.yml",
    f"{HOME}/.claude/history.jsonl",
    f"{HOME}/.config/google-chrome/Default/Cookies",
    "/etc/shadow",
    "/etc/ssh/ssh_host_ed25519_key",
]

OTHERS = [
    "/",
    "/p",
    "/p/env",
    "/p/environment.py",
    "/p/.env.example",
    "/p/.env.sample",
    "/p/.env.template",
    "/p/.env.local.example",
    "/p/example.env",
    "/p/id_rsa.pub",
    "/p/keyboard.ts",
    "/p/src/secrets.py",
    "/p/tokens.json",
    "/p/credentials.py",
    "/p/service/account.json",
    "/p/package.json",
    "/p/.claude/settings.json",
    "/p/.docker/Dockerfile",
    "/p/config.json",
    HOME,
    f"{HOME}/.sshx",
    f"{HOME}/project/.bash_history",
    "/etc/shadowed",
    "/etc/hosts",
]


@pytest.mark.parametrize("path", CREDENTIALS)
def test_a_file_that_holds_credentials_is_known(path: str) -> None:
    assert is_credential(path, HOME)


@pytest.mark.parametrize("path", OTHERS)
def test_another_file_is_none(path: str) -> None:
    assert not is_credential(path, HOME)


@pytest.mark.parametrize(
    ("roots", "home"), [([f"{HOME}/x"], HOME), ([HOME], HOME), ([f"{HOME}/x", f"{HOME}/.cursor/worktrees/x"], "")]
)
def test_a_workspace_in_a_place_of_credentials_is_judged_by_names(roots: list[str], home: str) -> None:
    assert home_for(roots, HOME) == home


def test_without_a_home_folder_names_count_alone() -> None:
    assert is_credential("/p/.env", "")
    assert not is_credential("/.bash_history", "")
