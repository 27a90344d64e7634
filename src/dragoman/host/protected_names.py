"""The one list of names that make other programs run something, and the judgement of a write against it.

A file with such a name makes an editor, a shell, git, a language server, a debugger, another agent or a CI service run
what it says, when a person merely opens or looks at the folder it is in. File tools ask before they write one; a
confined command can neither change nor leave one (`watched`). The list holds at any depth and for every spelling that
some file system takes for the same name. `is_protected` is pure; `is_protected_write` looks at the disk as well,
because a folder is a git repository by what is in it and not by its name.

Not in the list is what people run on purpose to build or to test, and what they read as the project itself: Makefile,
conftest.py, package.json, pyproject.toml, build.rs, the source.
"""

import functools
import os
import unicodedata
from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from dragoman.host.git_config import configured_files, repository_above
from dragoman.host.paths import is_inside

# A folder or a file: everything under it is protected as well. In the spelling of `plain`.
_NAMES: Final = frozenset(
    {
        # Version control: hooks, filters, merge drivers, editors, includes, further repositories.
        *(".git", "git~1", ".hg", ".hgrc", ".svn", ".jj", ".bzr", ".sl", ".pijul", ".repo", ".gitconfig"),
        *("_darcs", "_fossil_", ".fslckout", ".fossil-settings", ".p4config"),
        *(".gitmodules", ".gitattributes", ".lfsconfig", ".git-credentials"),
        # What version control runs at a commit.
        *(
            ".githooks",
            ".husky",
            ".huskyrc",
            ".pre-commit-config.yaml",
            ".pre-commit-config.yml",
            ".lefthook.yml",
            ".lefthook.yaml",
        ),
        *("lefthook.yml", "lefthook.yaml", ".overcommit.yml", "prek.toml", "hk.pkl", "captainhook.json", "grumphp.yml"),
        # Editors: tasks on opening a folder, project-local start-up files, paths of programs and language servers.
        *(".vscode", ".vs", ".idea", ".zed", ".cursor", ".fleet", ".helix", ".lapce", ".nova", ".theia", ".settings"),
        *(".project", ".externaltoolbuilders", ".sublime-project", ".kateproject", ".kateconfig", ".kakrc", ".kak"),
        *(
            ".vim",
            ".nvim",
            ".exrc",
            ".vimrc",
            ".gvimrc",
            ".lvimrc",
            ".local.vimrc",
            ".nvimrc",
            ".nvim.lua",
            ".lazy.lua",
        ),
        *(".neoconf.json", ".nlsp-settings", ".ycm_extra_conf.py", ".emacs", ".emacs.el", ".emacs.d", ".dir-locals.el"),
        *(".dir-locals-2.el", ".emacs.desktop", ".projectile", ".editorconfig", "session.vim"),
        # Development environments that are built and started when a folder is opened.
        *(".devcontainer", ".devcontainer.json", ".gitpod.yml", ".gitpod", ".replit", ".idx"),
        *(".codesandbox", ".stackblitzrc", "devfile.yaml", ".devfile.yaml"),
        # Language servers and linters that editors start by themselves, and that load code or programs named here.
        *(
            ".clangd",
            ".ccls",
            ".luarc.json",
            ".luarc.jsonc",
            ".pylintrc",
            "pylintrc",
            ".flake8",
            ".mypy.ini",
            "mypy.ini",
        ),
        *(".solargraph.yml", ".yardopts", ".mvn", ".metals", ".bsp", "buildserver.json", ".sourcekit-lsp"),
        *("hie.yaml", ".hie-bios", ".merlin", ".lsp", ".calva", ".joyride", ".ropeproject", ".jedi", "omnisharp.json"),
        *("rust-analyzer.toml", ".rust-analyzer.toml", ".clang_complete", ".cquery", ".factorypath", ".ansible-lint"),
        *(".formatter.exs", ".credo.exs", ".tflint.hcl"),
        # Agents: servers and commands that they start, and instructions that they follow.
        *(".dragoman", ".claude", ".codex", ".gemini", ".qwen", ".opencode", ".goose", ".aider.conf.yml", ".continue"),
        *(
            ".mcp.json",
            "mcp.json",
            "acp.json",
            ".acp",
            ".cursorrules",
            ".windsurf",
            ".roo",
            ".kiro",
            ".agents",
            ".agent",
        ),
        *(
            ".roomodes",
            ".rules",
            ".windsurfrules",
            ".clinerules",
            ".cline",
            ".goosehints",
            ".junie",
            ".augment",
            ".trae",
        ),
        *(
            ".amp",
            ".amazonq",
            ".kilocode",
            ".factory",
            ".openhands",
            ".copilot",
            ".qoder",
            ".iflow",
            ".codebuddy",
            ".crush.json",
            "crush.json",
        ),
        *(".qoder", ".iflow", ".codebuddy"),
        *("opencode.json", "opencode.jsonc", "agents.md", "agent.md", "agents.override.md", "claude.md"),
        *("claude.local.md", "gemini.md", "qwen.md", "warp.md"),
        # Shells and terminals, when they start or enter a folder, and what they read on the way.
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".login", ".logout"),
        *(
            ".cshrc",
            ".tcshrc",
            ".zshrc",
            ".zshenv",
            ".zprofile",
            ".zlogin",
            ".zlogout",
            ".kshrc",
            ".mkshrc",
            ".inputrc",
        ),
        *(".oh-my-zsh", ".zsh", ".pam_environment", ".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".tmux.conf"),
        *(".tmux", ".screenrc", ".wezterm.lua", ".lessfilter", ".lesskey", ".mailcap"),
        # Environments that change with the folder; versions that may be a path to a program.
        *(".envrc", ".direnv", ".autoenv", ".autoenv.zsh", ".autoenv_leave.zsh", ".mise.toml", ".mise.local.toml"),
        *("mise.toml", "mise.local.toml", ".mise", ".rtx.toml", ".tool-versions", ".shadowenv.d"),
        *("rust-toolchain", "rust-toolchain.toml"),
        # Debuggers, interpreters and database shells that read a file of the folder they are started in.
        *(".gdbinit", ".lldbinit", ".pdbrc", ".pdbrc.py", ".pythonrc", ".pythonrc.py", ".irbrc", ".pryrc", ".rdbgrc"),
        *(".byebugrc", ".rprofile", ".renviron", ".ghci", ".iex.exs", ".ocamlinit", ".sbclrc", ".octaverc", ".perldb"),
        *(".juliarc.jl", ".erlang", ".sqliterc", ".psqlrc", ".my.cnf", ".mylogin.cnf"),
        # Package managers and tools that run what they are configured with, or send secrets where it says.
        *(".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn", ".pnpmfile.cjs", ".pypirc", ".netrc", ".curlrc", ".wgetrc"),
        *(".gemrc", ".bundle", ".condarc", ".bazelrc", ".bazeliskrc", ".sbtopts", ".jvmopts", ".m2", ".lein"),
        *(".ssh", ".gnupg", ".aws", ".kube", ".docker"),
        # CI services, which run what is pushed.
        *(
            ".gitlab-ci.yml",
            ".gitlab-ci.yaml",
            ".circleci",
            ".travis.yml",
            ".drone.yml",
            ".woodpecker",
            ".woodpecker.yml",
        ),
        *(".woodpecker.yaml", ".buildkite", ".cirrus.yml", ".semaphore", ".teamcity", ".appveyor.yml", "appveyor.yml"),
        *("azure-pipelines.yml", "bitbucket-pipelines.yml", "jenkinsfile", ".builds", ".build.yml"),
        *("azure-pipelines.yaml", ".tekton", "cloudbuild.yaml", "cloudbuild.yml", "buildspec.yml", "buildspec.yaml"),
        *("bitrise.yml", "codemagic.yaml", ".harness", "zuul.yaml", ".zuul.yaml", "zuul.d", ".zuul.d", ".packit.yaml"),
    }
)
# The same for names in names, wherever the first of them is.
_CHAINS: Final = frozenset(
    {
        # CI services, and instructions that an agent of theirs follows.
        *((".github", name) for name in ("workflows", "actions", "copilot-instructions.md", "instructions", "prompts")),
        *((".github", name) for name in ("agents", "chatmodes", "hooks", "skills")),
        *((folder, "workflows") for folder in (".forgejo", ".gitea")),
        # Cargo: runners, linkers, aliases, and what is on the PATH.
        *((".cargo", name) for name in ("config", "config.toml", "bin", "env")),
        *((".gradle", name) for name in ("init.d", "init.gradle", "init.gradle.kts", "gradle.properties")),
        # What a login, a shell, a prompt or an editor of a home folder reads.
        *(
            (".config", name)
            for name in (
                *("autostart", "systemd", "environment.d", "plasma-workspace", "fish", "zsh", "nushell", "powershell"),
                *(
                    "starship.toml",
                    "direnv",
                    "mise",
                    "mise.toml",
                    "git",
                    "jj",
                    "nvim",
                    "vim",
                    "helix",
                    "zed",
                    "emacs",
                    "kak",
                    "code",
                ),
                *("tmux", "kitty", "alacritty", "wezterm", "ghostty", "i3", "sway", "hypr", "gh", "pip", "containers"),
                *("claude", "goose", "opencode", "crush", "dragoman"),
            )
        ),
        *((".local", name) for name in ("bin", "lib")),
        *((".local", "share", name) for name in ("applications", "systemd", "nvim", "dbus-1", "kio", "nautilus")),
        *(("library", name) for name in ("launchagents", "launchdaemons")),
    }
)
# Beginnings and ends of names. Linters' settings may be programs, and editors run the linter of an open folder.
_BEGINNINGS: Final = (
    *(".eslintrc", "eslint.config.", ".prettierrc", "prettier.config.", ".stylelintrc", ".aider.", ".rubocop"),
    *(".golangci.", ".lintstagedrc", "lint-staged.config.", ".simple-git-hooks.", "simple-git-hooks."),
)
_ENDS: Final = (".code-workspace", ".sublime-project", ".sublime-workspace")
_CHAIN_ENDS: Final = frozenset(chain[-1] for chain in _CHAINS)
_CHAIN_BEGINNINGS: Final = frozenset(chain[0] for chain in _CHAINS)

# A folder that has the first and one of the others is a git repository, whatever it is called.
_GIT_HEAD: Final = "head"
_GIT_OTHERS: Final = frozenset({"objects", "refs", "commondir"})
GIT_MARKERS: Final = frozenset({_GIT_HEAD, *_GIT_OTHERS})
# A folder with more names than this is not read to its end, and counts as a git folder: nothing is written unasked.
_MOST_NAMES: Final = 200_000
# Folders in folders, and names, of something protected that are looked through for links.
_LINK_DEPTH: Final = 6
_LINK_NAMES: Final = 5_000


class FolderFacts(NamedTuple):
    """What matters of a folder: the names in it that make a git folder, as `plain` spells them, and real paths that
    are protected because of it: what links with a protected name, or in something protected, lead to, and the files of
    a repository that git runs."""

    markers: frozenset[str]
    targets: tuple[str, ...]


def is_protected(parts: Sequence[str]) -> bool:
    """Return whether a path below a root is, or lies in, something protected by its name. Looks at nothing."""
    known = tuple(map(plain, parts))
    return any(is_plain_protected(known[: at + 1]) for at in range(len(known)))


def is_protected_write(root: str, parts: Sequence[str], *, look: Callable[[str], FolderFacts] | None = None) -> bool:
    """Return whether writing a file at `parts` below the folder `root` needs a yes.

    Blocks: looks at the folders on the way.

    True for a protected name, for anything in a git folder, and for a file by which a folder on the way, or the root
    itself, would become one. The order of writes does not matter: the one that completes a git folder is protected.
    True as well for what a link leads to that has a protected name, or is in something protected, in a folder on the
    way; and for files that git runs or reads its settings from, in the repository that the root may lie in as well.
    `look` is `look_in`, or remembers what that said, for those who judge many files at once.
    """
    if is_protected(parts):
        return True
    look = look or look_in
    whole = os.path.join(root, *parts)
    above = repository_above(root)
    targets = list(look(above).targets) if above else []
    folder = root
    for part in parts:
        found = look(folder)
        if is_git_folder({*found.markers, plain(part)}):
            return True
        targets += found.targets
        folder = os.path.join(folder, part)
    return any(is_inside(whole, target) for target in targets)


def is_git_folder(names: Collection[str]) -> bool:
    """Return whether git takes a folder with these names, in the spelling of `plain`, for a repository."""
    return _GIT_HEAD in names and not _GIT_OTHERS.isdisjoint(names)


def is_plain_protected(parts: Sequence[str]) -> bool:
    """Return whether the last of these parts, in the spelling of `plain`, is protected; the others say where it is."""
    name = parts[-1]
    if name in _NAMES or name.startswith(_BEGINNINGS) or name.endswith(_ENDS):
        return True
    return name in _CHAIN_ENDS and any(tuple(parts[-len(chain) :]) == chain for chain in _CHAINS)


def may_end_a_chain(name: str) -> bool:
    """Return whether a name, in the spelling of `plain`, is protected in some folder."""
    return name in _CHAIN_ENDS


@functools.lru_cache(maxsize=16_384)
def plain(name: str) -> str:
    """Return a name as the most forgiving file system sees it.

    Without case, what cannot be seen, and dots at the end.
    """
    if name.isascii() and name.isprintable():
        visible = name.lower()
    else:
        visible = "".join(c for c in unicodedata.normalize("NFKC", name) if unicodedata.category(c) not in _UNSEEN)
        visible = unicodedata.normalize("NFKC", visible.casefold())
    return visible.split(":", 1)[0].rstrip(". ")


_UNSEEN: Final = ("Cf", "Cc")


def look_in(folder: str) -> FolderFacts:
    """Return what matters of a folder; it counts as a git folder if it cannot be read to its end. Blocks."""
    markers: set[str] = set()
    targets = configured_files(folder)
    everything = FolderFacts(GIT_MARKERS, ())
    try:
        with os.scandir(folder) as entries:
            for count, entry in enumerate(entries):
                name = plain(entry.name)
                if count >= _MOST_NAMES:
                    return everything
                if name in GIT_MARKERS:
                    markers.add(name)
                elif is_plain_protected((name,)) or name in _CHAIN_BEGINNINGS:
                    targets += links_of(entry.path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError:
        return everything
    return FolderFacts(frozenset(markers), tuple(targets))


def links_of(path: str) -> list[str]:
    """Return the real paths that a link with a protected name leads to, or links in a protected folder. Blocks.

    Of a git folder only links directly in it count: those among its hooks are known to `git_config`.
    """
    name = plain(os.path.basename(path))
    if os.path.islink(path):
        real = os.path.realpath(path)
        rests = [chain[1:] for chain in _CHAINS if chain[0] == name]
        return [real] if is_plain_protected((name,)) else [os.path.join(real, *rest) for rest in rests]
    found: list[str] = []
    names = 0
    for folder, folders, files in os.walk(path):
        inner = tuple(map(plain, os.path.relpath(folder, path).split(os.sep))) if folder != path else ()
        for one in (*folders, *files):
            whole = os.path.join(folder, one)
            if os.path.islink(whole) and is_protected((name, *inner, one)):
                real = os.path.realpath(whole)
                # A link back to the folder around it does not make all of that protected.
                found += [real] if not is_inside(path, real) else []
        names += len(folders) + len(files)
        if name == ".git" or len(inner) >= _LINK_DEPTH:
            folders.clear()
        if names > _LINK_NAMES:
            break
    return found
