"""Copies of files that hold credentials are known by their names, as are the logins of tools; examples are not."""

from pathlib import Path

import pytest

from dragoman.host.credential_files import credential_files
from dragoman.host.secrets import is_credential

COPIES = [
    *(".env~", ".env_local", ".env-old", ".env.bak", ".env2", ".ENV.BAK", "prod.env.bak", ".envrc.orig", ".env.swp"),
    *("id_rsa~", "id_rsa.bak", "id_rsa.old", "id_rsa_old", "id_rsa-backup", "id_rsa.1", "id_rsa (1)", "id_rsa copy"),
    *("id_rsa.2024-05-01", "id_rsa_20240501", "id_rsa.bak.2", "id_rsa.old~", ".id_rsa.swp", "#id_rsa#", "id_rsa.~2~"),
    *("id_ed25519_work", "server.pem.save", "server_old.pem", "server.key.gz", "store.jks.backup", ".netrc.rpmsave"),
    *("terraform.tfstate.backup", "terraform.tfstate.1714550000.backup", "prod.tfvars.bak", "x.auto.tfvars.json"),
    *("credentials.bak", "credentials-old.json", "credentials (1).json", "credentials_2024-05-01.json"),
    *("credentials.local.json", "secrets.yaml.dpkg-old", ".npmrc_backup", ".pgpass.2024_05_01", ".htpasswd.new"),
    *(".docker/config.json.bak", ".kube.bak/config", ".ssh_old/config", ".aws-2024-05-01/credentials"),
]
LOGINS = [
    *("credentials", "terraform.tfvars", ".vault_pass", ".vault-password", ".dev.vars", ".dev.vars.production"),
    *(".codex/auth.json", ".gemini/oauth_creds.json", ".qwen/oauth_creds.json", ".claude/.credentials.json"),
    *("opencode/auth.json", ".composer/auth.json", "github-copilot/apps.json", "gcloud/access_tokens.db"),
    *("gcp-service-account.json", "app-firebase-adminsdk-1.json", "aws_credentials.csv", "secrets.prod.yaml"),
    *(
        "secret.json",
        ".claude.json",
        "kubeconfig",
        "prod.kubeconfig",
        "kubeconfig.yaml",
        "AuthKey.p8",
        "vpn.ovpn",
        "rclone.conf",
        "kaggle.json",
    ),
    *(".m2/settings.xml", ".cargo/credentials", ".gem/credentials", "git/credentials", "ssh_host_rsa_key"),
]
OTHERS = [
    *("environment.py", ".env.example", ".env.example.json", "example.env", ".env-sample", ".environment", "env.bak"),
    *("credentials.py", "credentials.ts", "credentials.example.json", "sample-credentials.json", "credentials.md"),
    *("credentials_old.py", "activity_credentials.xml", "secrets.py", "secrets.example.yaml", "secrets.schema.json"),
    *("id_rsa.pub", "id_rsa.pub.bak", "id_rsa.py", "test_id_rsa.py", "kubeconfig.go", "kubeconfig_test.go"),
    *("terraform.tfvars.example", "example.tfvars", "main.tf", "notes.bak", "a.old", "~", ".bak", "20240501", "#"),
    *("locales/en/auth.json", "auth.json", ".claude/settings.json", ".docker/Dockerfile", ".secrets.baseline"),
    *(
        "token.json",
        "tokens.json",
        "config.json",
        "gradle.properties",
        "settings.xml",
        "hosts.yml",
        "example-kubeconfig",
    ),
]


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_is_known(name: str) -> None:
    assert is_credential(f"/p/{name}", "")


@pytest.mark.parametrize("name", LOGINS)
def test_a_login_is_known(name: str) -> None:
    assert is_credential(f"/p/{name}", "")


@pytest.mark.parametrize("name", OTHERS)
def test_another_file_is_none(name: str) -> None:
    assert not is_credential(f"/p/{name}", "")


def test_a_folder_with_source_code_is_none(tmp_path: Path) -> None:
    for name in ("credentials", "kubeconfig", "old/credentials"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "code.go").write_text("x")
        assert not is_credential(f"{tmp_path}/{name}", "", is_folder=True)
    assert credential_files([str(tmp_path)], "") == []
    (tmp_path / "old" / "credentials" / "credentials").write_text("x")
    assert credential_files([str(tmp_path)], "") == [str(tmp_path / "old" / "credentials" / "credentials")]


def test_a_copy_of_a_folder_with_keys_is_found(tmp_path: Path) -> None:
    (tmp_path / ".ssh.bak").mkdir()
    (tmp_path / ".ssh.bak" / "config").write_text("x")
    assert credential_files([str(tmp_path)], "") == [str(tmp_path / ".ssh.bak")]
