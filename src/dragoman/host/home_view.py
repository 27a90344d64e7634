"""What a confined command sees of the user's home folder: the roots, and the toolchains that it needs. No more.

The list is of what language tools install or keep for all projects. What keeps keys among them, such as
`.cargo/credentials.toml`, is hidden by `secrets`. Only what is there by its own name is shown: a link could lead
anywhere. Where a root is the home folder or around it, nothing of this applies; then `secrets` alone hides what it
knows.
"""

import os
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

from dragoman.host.paths import is_inside

TOOLCHAINS: Final = (
    *("bin", "go", ".local/bin", ".local/lib", ".local/share/gem", ".local/share/mise", ".local/share/pnpm"),
    *(".local/share/uv", ".local/share/pipx", ".local/share/virtualenvs", ".virtualenvs", ".pyenv", ".rye", ".conda"),
    *("miniconda3", "miniforge3", "anaconda3", ".asdf", ".nvm", ".fnm", ".volta", ".npm", ".npm-global", ".yarn"),
    *(".bun", ".deno", ".cargo", ".rustup", ".rbenv", ".rvm", ".gem", ".bundle", ".sdkman", ".gradle", ".ivy2", ".sbt"),
    *(".nuget", ".dotnet", ".pub-cache", ".mix", ".hex", ".opam", ".ghcup", ".cabal", ".stack", ".julia", ".elan"),
    *(".linuxbrew", ".ccache", ".config/git", ".cache/uv", ".cache/pip", ".cache/go-build", ".cache/pre-commit"),
    *(".cache/ms-playwright", ".cache/pypoetry", ".cache/node", ".cache/yarn", ".cache/bazel", ".cache/sccache"),
)
# Settings that programs read, and that hold no keys.
_FILES: Final = (".gitconfig", ".gitignore", ".gitignore_global", ".tool-versions")


class HomeView(NamedTuple):
    """Folders and files to show read-only, and the home folder to hide; empty: it is not hidden as a whole."""

    hidden: str
    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def home_view(home: str, roots: Sequence[str], hidden: Sequence[str]) -> HomeView:
    """Return what to hide and to show of `home`, a real path. `roots` and `hidden` are real paths too. Blocks."""
    if home == "/" or not os.path.isdir(home) or any(is_inside(home, root) for root in roots):
        return HomeView("")
    names = [os.path.join(home, name) for name in TOOLCHAINS]
    prefix = os.path.realpath(sys.base_prefix)  # of our own interpreter, which confines the command further
    if is_inside(prefix, home) and prefix not in (home, os.path.join(home, ".local")):
        names.append(prefix)
    folders = [name for name in names if os.path.isdir(name) and _may_show(name, roots, hidden)]
    outer = [name for name in folders if not any(name != other and is_inside(name, other) for other in folders)]
    files = [os.path.join(home, name) for name in _FILES]
    shown = [name for name in files if os.path.isfile(name) and _may_show(name, roots, hidden)]
    return HomeView(home, tuple(dict.fromkeys(outer)), tuple(shown))


def _may_show(path: str, roots: Sequence[str], hidden: Sequence[str]) -> bool:
    """Return whether a path is no link, and neither in a root, which is shown as it is, nor in what is hidden."""
    return os.path.realpath(path) == path and not any(is_inside(path, other) for other in (*roots, *hidden))
