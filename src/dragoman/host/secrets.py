"""Where credentials are kept, in files and in the environment. Pure.

`is_credential` judges a path: what it names is read by a file tool only after a question. `credential_paths` is what a
confined command cannot see at all. Credentials by name (`.env`, `*.pem`) are not hidden from commands: builds and tests
of the project need them. The lists are of what is known. The environment is judged more strictly here than for other
children (`environment.child_environment`): a confined command needs less.
"""

import functools
import os
import re
from collections.abc import Mapping, Sequence
from typing import Final

from dragoman.host.environment import is_harmless_name, is_secret
from dragoman.host.protected import plain

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


# Folders in which every file is one, wherever they stand.
_CREDENTIAL_FOLDERS: Final = frozenset(
    {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".oci", ".password-store", ".vault-token", ".gcloud"}
)
# Files that hold keys, tokens or passwords, wherever they stand.
_CREDENTIAL_FILES: Final = frozenset(
    {
        *(".env", ".envrc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".npmrc", ".yarnrc.yml", ".pypirc", ".htpasswd"),
        *(".git-credentials", ".s3cfg", ".boto", ".dockercfg", ".vault-token", ".terraformrc"),
        *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk"),
        *("credentials.json", "credentials.toml", "application_default_credentials.json"),
        *("secrets.json", "secrets.toml", "secrets.yaml", "secrets.yml", "secrets.env"),
    }
)
WELL_KNOWN: Final = (*sorted(_CREDENTIAL_FOLDERS | _CREDENTIAL_FILES), ".env.local", ".env.production")
# The last two names of a path, where the last alone says too little.
_CREDENTIAL_PAIRS: Final = frozenset(
    {
        *((".docker", "config.json"), (".cargo", "credentials"), (".gem", "credentials"), ("gcloud", "credentials.db")),
        *(("gh", "hosts.yml"), (".composer", "auth.json"), ("git", "credentials")),
    }
)
_CREDENTIAL_ENDINGS: Final = (
    *(".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".keytab", ".tfstate", ".env"),
)
_CREDENTIAL_PATTERN: Final = re.compile(r"(client[-_]secret|service[-_]?account).*\.json|\.env[.-].+")
# Such a file shows which variables there are, and is meant to be read.
_EXAMPLE: Final = re.compile(r".*[._-](example|sample|template|dist|defaults?|schema)|(example|sample|template)[._-].*")


def is_credential(path: str, home: str) -> bool:
    """Whether reading a file or folder needs a yes of its own: it holds credentials by its place or by its name.

    `path` is absolute, with links resolved; `home` is the user's home folder, resolved as well, or empty. What a file
    system may take for the same name counts as the same name.
    """
    names = [plain(part) for part in path.split("/") if part]
    if any(name in _CREDENTIAL_FOLDERS for name in names) or (names and is_credential_name(*names[-2:])):
        return True
    return _is_in_credential_place(path, home)


def home_for(roots: Sequence[str], home: str) -> str:
    """The `home` to judge the files of a workspace by, whose real folders are `roots`.

    Empty where one of them lies in a place that keeps credentials, as worktrees of other agents do: there the user has
    opened the place, and names count alone.
    """
    return "" if any(_is_in_credential_place(root, home) for root in roots) else home


def _is_in_credential_place(path: str, home: str) -> bool:
    """Whether a path is, or lies below, one of the places where this machine or this user keeps credentials."""
    known = _known_places(home)
    place = ""
    for part in path.split("/"):
        if part:
            place += "/" + part
            if place in known:
                return True
    return False


def is_credential_name(*names: str) -> bool:
    """Whether a file or folder is one by its name alone, which is the last of `names`; before it, its folder's."""
    name = names[-1]
    if name in _CREDENTIAL_FOLDERS or names[-2:] in _CREDENTIAL_PAIRS:
        return True
    is_one = name in _CREDENTIAL_FILES or name.endswith(_CREDENTIAL_ENDINGS) or _CREDENTIAL_PATTERN.fullmatch(name)
    return bool(is_one) and _EXAMPLE.fullmatch(name) is None


@functools.lru_cache(maxsize=8)
def _known_places(home: str) -> frozenset[str]:
    return frozenset((*SYSTEM_SECRETS, *(credential_paths(home) if home else ())))


# Anywhere in a name, but not as a part of words that mean something else: KEYBOARD_LAYOUT, TOKENIZERS_PARALLELISM,
# AUTHOR. "PASS" would be in BYPASS, "PAT" in PATH.
_SECRET_PARTS: Final = re.compile(
    r"KEY(?!BOARD|MAP|TIMEOUT|WORD)|TOKEN(?!IZ)|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH(?!OR(?!I[ZS]))|COOKIE|PRIVATE"
    r"|_PAT(_|$)|_DSN(_|$)|WEBHOOK|_SAS(_|$)|CONN_?STR"
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
    looks_secret = _SECRET_PARTS.search(upper) and not is_harmless_name(upper)
    return bool(is_secret(plain, value) or looks_secret or _DOORS.fullmatch(upper))
