"""Where credentials are kept, in files and in the environment. Pure.

`is_credential` judges a path: what it names is read by a file tool only after a question. `credential_paths` is what a
confined command cannot see at all. Credentials by name (`.env`, `*.pem`) are not hidden from commands: builds and tests
of the project need them. The lists are of what is known. The environment is judged more strictly here than for other
children (`environment.child_environment`): a confined command needs less.
"""

import functools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dragoman.host.environment import is_harmless_name, is_secret
from dragoman.host.protected_names import plain

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
    *(".local/state/dragoman", ".cache/dragoman", "Library/Application Support/dragoman", "Library/Caches/dragoman"),
    # what was said and seen elsewhere
    *(".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history"),
    *(".mozilla", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".thunderbird"),
)


def credential_paths(home: str) -> tuple[str, ...]:
    """Return where a user's keys may be kept."""
    return tuple(os.path.join(home, name) for name in _HOME_SECRETS)


# Folders in which every file is one, wherever they stand.
_CREDENTIAL_FOLDERS: Final = frozenset(
    {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".oci", ".password-store", ".vault-token", ".gcloud"}
)
# Files that hold keys, tokens or passwords, wherever they stand.
_CREDENTIAL_FILES: Final = frozenset(
    {
        *(".env", ".envrc", ".netrc", "_netrc", ".authinfo", ".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf"),
        *(".npmrc", ".yarnrc.yml", ".pypirc", ".htpasswd", ".git-credentials", ".s3cfg", ".passwd-s3fs", ".boto"),
        *(".dockercfg", ".dockerconfigjson", ".terraformrc", "terraform.rc", "credentials.tfrc.json", ".databrickscfg"),
        *(".vault-token", ".vault_pass", ".vault-pass", ".vault_password", ".vault-password", ".vault_pass.txt"),
        *("vault_pass.txt", "vault_password.txt", ".dev.vars", ".msmtprc", ".fetchmailrc", ".smbcredentials"),
        *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk"),
        *(".credentials", "application_default_credentials.json", "oauth_creds.json", "accesstokens.json"),
        *("msal_token_cache.json", "azureauth.json", "local.settings.json", "kaggle.json", ".clasprc.json"),
        *("rclone.conf", ".sentryclirc", "sftp-config.json", "settings-security.xml"),
        *(".secrets", "secret.json", ".claude.json", "credentials.xml", "accesskeys.csv", "rootkey.csv"),
    }
)
# Only files: a folder of such a name holds source code.
_CREDENTIAL_WORD: Final = re.compile(r"credentials|(.+[._-])?kubeconfig([_-][a-z0-9_-]+)?")
WELL_KNOWN: Final = (
    *sorted(_CREDENTIAL_FOLDERS | _CREDENTIAL_FILES),
    *(".env.local", ".env.production", "credentials.json", "credentials.toml", "secrets.json", "secrets.toml"),
    *("secrets.yaml", "secrets.yml", "secrets.env", "terraform.tfstate", "terraform.tfvars"),
)
# The last two names of a path, where the last alone says too little.
_CREDENTIAL_PAIRS: Final = frozenset(
    {
        *((".docker", "config.json"), ("gcloud", "credentials.db"), ("gcloud", "access_tokens.db")),
        *(("gh", "hosts.yml"), ("glab-cli", "config.yml"), ("doctl", "config.yaml"), (".fly", "config.yml")),
        *((".m2", "settings.xml"), (".gradle", "gradle.properties"), (".dbt", "profiles.yml"), (".snowsql", "config")),
        *((".netlify", "config.json"), (".railway", "config.json"), (".supabase", "access-token")),
        *(("huggingface", "token"), (".huggingface", "token"), (".vscode", "sftp.json")),
        # agents
        *(("opencode", "auth.json"), ("github-copilot", "hosts.json"), ("github-copilot", "apps.json")),
    }
)
_CREDENTIAL_ENDINGS: Final = (
    *(".pem", ".key", ".p8", ".p12", ".pfx", ".pkcs12", ".jks", ".jceks", ".bks", ".keystore", ".kdb", ".kdbx", ".ppk"),
    *(".keytab", ".keychain", ".keychain-db", ".agekey", ".psafe3", ".ovpn", ".publishsettings", ".kubeconfig"),
    *(".tfstate", ".tfvars", ".tfvars.json", ".env"),
)
_CREDENTIAL_PATTERN: Final = re.compile(
    r"\.env([0-9]+|[._-].+)|\.dev\.vars\..+"
    r"|(.*[._-])?(client[-_]?secret|service[-_]?account|firebase-adminsdk).*\.json"
    r"|(.*[._-])?credentials\.(json|toml|ya?ml|ini|cfg|conf|csv|txt|db|properties)"
    r"|\.?secrets([._-](prod|production|stage|staging|dev|development|test|live|qa|uat))?"
    r"\.(json|toml|ya?ml|env|ini|cfg|conf|txt|properties)"
    r"|(.+[._-])?kubeconfig([_-][a-z0-9_-]+)?\.(ya?ml|json|conf)|ssh_host_[a-z0-9]+_key"
    r"|id_(rsa|dsa|ecdsa|ed25519|ecdsa_sk|ed25519_sk)[_-][a-z0-9_@-]+"  # with a dot, it is `id_rsa.pub` or `id_rsa.py`
)
# Such a file shows which variables there are, and is meant to be read.
_EXAMPLE: Final = re.compile(
    r".*[._-](example|sample|template|dist|defaults?|schema)|(example|sample|template)[._-].*"
    r"|.*[._-](example|sample|template|schema)\.(json|toml|ya?ml|env|ini|cfg|conf|txt|xml|csv|properties|tfvars)"
)
# What editors, package managers, Terraform and people add to the name of a file when they make a copy of it.
_COPY_WORDS: Final = frozenset(
    {
        *("bak", "bkp", "backup", "old", "older", "orig", "original", "save", "saved", "sav", "copy", "prev"),
        *("previous", "new", "tmp", "temp", "local", "swp", "swo", "swn", "rej", "rpmsave", "rpmnew", "rpmorig"),
        *("dpkg-old", "dpkg-dist", "dpkg-new", "dpkg-tmp", "ucf-old", "ucf-dist", "gz", "bz2", "xz", "zst", "zip"),
    }
)
_COPY: Final = re.compile(
    rf"(?:~[0-9]*~?|\.~[0-9]+~|[._ -](?:{'|'.join(map(re.escape, sorted(_COPY_WORDS)))})[0-9]*|\.[0-9]{{1,3}}"
    r"| ?\([0-9]+\)| copy [0-9]+|[._ -]?[0-9]{8,14}|[._ -][0-9]{4}[-_.][0-9]{2}[-_.][0-9]{2}"
    r"(?:[ t_.-][0-9]{2}[-_.]?[0-9]{2}(?:[-_.]?[0-9]{2})?z?)?)\Z"
)
_COPY_ENDS: Final = (*_COPY_WORDS, *"0123456789~)z")
# A copy of a copy of a copy.
_COPIES: Final = 3


def is_credential(path: str, home: str, *, is_folder: bool = False) -> bool:
    """Return whether reading a file or folder needs a yes of its own: it holds credentials by its place or by its name.

    `path` is absolute, with links resolved; `home` is the user's home folder, resolved as well, or empty. What a file
    system may take for the same name counts as the same name. `is_folder`: it is known to be one, and no file.
    """
    names = [plain(part) for part in path.split("/") if part]
    if any(name.startswith(".") and _is_credential_folder(name) for name in names):  # as all of those do
        return True
    if names and is_credential_name(*names[-2:], is_folder=is_folder):
        return True
    return _is_in_credential_place(path, home)


def home_for(roots: Sequence[str], home: str) -> str:
    """Return the `home` to judge the files of a workspace by, whose real folders are `roots`.

    Empty where one of them lies in a place that keeps credentials, as worktrees of other agents do: there the user has
    opened the place, and names count alone.
    """
    return "" if any(_is_in_credential_place(root, home) for root in roots) else home


def _is_in_credential_place(path: str, home: str) -> bool:
    """Return whether a path is, or lies below, one of the places where this machine or this user keeps credentials."""
    known = _known_places(home)
    place = ""
    for part in path.split("/"):
        if part:
            place += "/" + part
            if place in known:
                return True
    return False


def is_credential_name(*names: str, is_folder: bool = False) -> bool:
    """Return whether a file or folder is one by its name alone, which is the last of `names`; before it, its folder's.

    A copy of such a file is one too: `id_rsa.bak`, `.env~`, `credentials-old.json`, `terraform.tfstate.backup`.
    """
    folder, name = names[-2:] if len(names) > 1 else ("", names[-1])
    if is_folder:
        return _is_credential_folder(name) or _is_one(folder, name)
    return any(_is_one(folder, one) or _is_word(one) for one in (name, *_originals(name)))


@functools.lru_cache(maxsize=4096)
def _is_credential_folder(name: str) -> bool:
    return name in _CREDENTIAL_FOLDERS or any(one in _CREDENTIAL_FOLDERS for one in _originals(name))


def _is_one(folder: str, name: str) -> bool:
    if name in _CREDENTIAL_FOLDERS or (folder, name) in _CREDENTIAL_PAIRS:
        return True
    if name == "auth.json" and folder.startswith("."):  # `.codex`, `.composer`; without a dot it is a page's texts
        return True
    is_one = name in _CREDENTIAL_FILES or name.endswith(_CREDENTIAL_ENDINGS) or _CREDENTIAL_PATTERN.fullmatch(name)
    return bool(is_one) and _EXAMPLE.fullmatch(name) is None


def _is_word(name: str) -> bool:
    return bool(_CREDENTIAL_WORD.fullmatch(name)) and _EXAMPLE.fullmatch(name) is None


def _originals(name: str) -> Iterator[str]:
    """Yield what a file was called that this one may be a copy of: `a.key` for `a.key.bak`, and for `a_old.key`."""
    if name.startswith(("#", ".#")):  # what Emacs saves by itself
        yield name.lstrip(".#").rstrip("#")
        yield "." + name.lstrip(".#").rstrip("#")
    whole = name
    for _ in range(_COPIES):
        shorter = _without_copy_mark(whole)
        if shorter == whole:
            break
        yield shorter
        if name.endswith((".swp", ".swo", ".swn")):  # vim puts a dot before the name, unless there is one
            yield shorter.removeprefix(".")
        whole = shorter
    stem, dot, ending = name.rpartition(".")
    shorter = _without_copy_mark(stem)
    if shorter != stem:
        yield f"{shorter}{dot}{ending}"


def _without_copy_mark(name: str) -> str:
    """Return a name without what says that it is a copy, if anything does."""
    if not name.endswith(_COPY_ENDS):  # a search looks at every file, and most names end here
        return name
    copy = _COPY.search(name, 1)
    return name if copy is None else name[: copy.start()]


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
    """Return the environment of a confined command: without secrets, addresses of other services and ways to run code.

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
