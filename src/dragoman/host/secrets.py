"""Where keys are kept, in files and in the environment: what a confined command does not get to see. Pure.

The lists are of what is known. The environment is judged more strictly here than for other children
(`environment.child_environment`): a confined command needs less.
"""

import os
import re
from collections.abc import Mapping
from typing import Final

from dragoman.host.environment import is_secret

SYSTEM_SECRETS: Final = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d"),
    *("/etc/ssl/private", "/etc/ssh", "/etc/krb5.keytab", "/etc/wireguard", "/etc/NetworkManager/system-connections"),
    *("/var/lib/docker", "/var/lib/containerd", "/var/lib/kubelet", "/var/lib/rancher", "/var/spool/cron"),
)
_HOME_SECRETS: Final = (
    # logins and keys
    *(".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".kube", ".docker", ".oci", ".terraform.d", ".vault-token"),
    *(".netrc", "_netrc", ".pgpass", ".my.cnf", ".s3cfg", ".boto", ".git-credentials", ".config/git/credentials"),
    *(".config/gh", ".config/hub", ".config/glab-cli", ".config/op", ".config/doctl", ".config/heroku", ".fly"),
    *(".npmrc", ".yarnrc.yml", ".pypirc", ".config/pip", ".cargo/credentials", ".cargo/credentials.toml", ".m2"),
    *(".gem/credentials", ".gradle/gradle.properties", ".composer/auth.json", ".config/composer/auth.json"),
    *(".password-store", ".local/share/keyrings", ".local/share/kwalletd", ".config/sops", ".config/rclone"),
    # agents, and their keys
    *(".anthropic", ".claude", ".claude.json", ".codex", ".gemini", ".openai", ".config/github-copilot", ".aider"),
    *(".config/opencode", ".local/share/opencode", ".config/goose", ".continue", ".cursor", ".huggingface"),
    *(".cache/huggingface/token", ".config/dragoman", ".local/share/dragoman", ".dragoman"),
    # what was said and seen elsewhere
    *(".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history"),
    *(".mozilla", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".thunderbird"),
)


def credential_paths(home: str) -> tuple[str, ...]:
    """Where a user's keys may be kept."""
    return tuple(os.path.join(home, name) for name in _HOME_SECRETS)


# Anywhere in a name; "PASS" would be in BYPASS, "PAT" in PATH.
_SECRET_PARTS: Final = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH|COOKIE|PRIVATE|_PAT(_|$)|_DSN(_|$)|WEBHOOK|_SAS(_|$)|CONN_?STR"
)
# Doors to daemons and screens of the host, and what changes the meaning of a command line before it is read.
_DOORS: Final = re.compile(
    r"SSH_.*|GPG_.*|DBUS_.*|DOCKER_.*|CONTAINER_HOST|PODMAN_.*|KUBE.*|XDG_RUNTIME_DIR|DISPLAY|WAYLAND_.*|XAUTHORITY"
    r"|TMUX.*|STY|SUDO_.*|.*_SOCK(ET)?|.*_AGENT_.*|LISTEN_.*|NOTIFY_.*|JOURNAL_STREAM|VSCODE_.*|AWS_.*|AZURE_.*|GOOGLE_.*"
    r"|BASH_ENV|ENV|BASH_FUNC_.*|BASHOPTS|SHELLOPTS|PROMPT_COMMAND|PS4|CDPATH|GLOBIGNORE|IFS|LD_.*|DYLD_.*|GIT_(?!PAGER"
    r"|TERMINAL_PROMPT|EDITOR).*|RIPGREP_CONFIG_PATH|LESSOPEN|LESSCLOSE|TMPDIR|TMP|TEMP|XDG_CACHE_HOME|PYTHONSTARTUP|PERL5OPT|RUBYOPT"
)
_PROXY: Final = re.compile(r"(?i).*_PROXY")


def confined_environment(
    base: Mapping[str, str], *, network: bool = False, allowed: frozenset[str] = frozenset()
) -> dict[str, str]:
    """What of an environment a confined command gets: nothing that looks like a secret, a door or a trick.

    `allowed` names what was meant, whatever it looks like. Proxies only with the network, and never with a password.
    """
    return {
        name: value
        for name, value in base.items()
        if name in allowed or not (_is_kept_back(name, value) or (_PROXY.fullmatch(name) and not network))
    }


def _is_kept_back(name: str, value: str) -> bool:
    upper = name.upper()
    plain = re.sub(r"_PROXY$", "", upper)  # a proxy's password counts as any other
    return bool(is_secret(plain, value) or _SECRET_PARTS.search(upper) or _DOORS.fullmatch(upper))
