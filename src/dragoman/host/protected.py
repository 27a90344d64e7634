"""Names that make other programs do things: hooks, editor and agent settings, shell start-up files. Pure.

Whoever can write such a file can make somebody's editor, shell or agent run something later, without a question. The
spelling does not help: what a file system may take for the same name is the same name here.
"""

import unicodedata
from collections.abc import Sequence
from typing import Final

# A folder or a file: everything under it is protected as well.
_NAMES: Final = frozenset(
    {
        # version control: hooks, filters, editors, includes
        *(".git", ".hg", ".svn", ".jj", ".gitconfig", ".gitmodules", ".gitattributes"),
        # editors
        *(".vscode", ".idea", ".zed", ".cursor", ".fleet", ".vim", ".nvim", ".exrc", ".vimrc", ".nvimrc", ".emacs"),
        *(".emacs.d", ".dir-locals.el", ".editorconfig", ".devcontainer", ".sublime-project"),
        # agents
        *(".dragoman", ".claude", ".codex", ".gemini", ".qwen", ".opencode", ".goose", ".aider.conf.yml", ".continue"),
        *(".mcp.json", "mcp.json", "acp.json", ".acp", ".cursorrules", ".windsurf", ".roo", ".kiro", ".agents"),
        # shells and what they read on the way
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".login", ".cshrc"),
        *(
            ".tcshrc",
            ".zshrc",
            ".zshenv",
            ".zprofile",
            ".zlogin",
            ".zlogout",
            ".kshrc",
            ".inputrc",
            ".envrc",
            ".direnv",
        ),
        *(".pam_environment", ".xprofile", ".xinitrc", ".xsession", ".tmux.conf", ".screenrc"),
        # package managers and tools that run what they are configured with
        *(
            ".npmrc",
            ".yarnrc",
            ".yarnrc.yml",
            ".yarn",
            ".pnpmfile.cjs",
            ".pypirc",
            ".netrc",
            ".husky",
            ".ssh",
            ".gnupg",
        ),
        *(".pre-commit-config.yaml", ".lefthook.yml", ".aws", ".kube", ".docker"),
    }
)


def is_protected(parts: Sequence[str]) -> bool:
    """Whether a path below a root is, or lies in, something protected."""
    return any(plain(part) in _NAMES for part in parts)


def plain(name: str) -> str:
    """A name as the most forgiving file system sees it: without case, what cannot be seen, and dots at the end."""
    visible = "".join(c for c in unicodedata.normalize("NFKC", name) if unicodedata.category(c) not in ("Cf", "Cc"))
    return unicodedata.normalize("NFKC", visible.casefold()).rstrip(". ").split(":", 1)[0]


def protected_names() -> frozenset[str]:
    """All of them, in lower case: for a sandbox, which has to name what it guards."""
    return _NAMES
