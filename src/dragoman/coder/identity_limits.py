"""What an identity may reach: the modes that are open to it, and why one is not.

Modes are ordered by how far a session in them can reach (`modes.REACH`), not by how often they ask: the person who
answers the questions is the one who is limited. The administrator's bounds (`managed`) are those of every identity.

A confined identity has the modes below `ask`. Where the machine can confine nothing, it has those that only read.
"""

import functools
import os
import sys
from collections.abc import Sequence
from typing import Final

from dragoman.coder.managed_settings import NOTHING_MANAGED, ManagedSettings
from dragoman.coder.modes import MODES, REACH
from dragoman.errors import INVALID_PARAMS, RequestFailed
from dragoman.host.paths import is_inside
from dragoman.vocabulary.identity import Identity, Needs

_LEAST: Final = 0
_CONFINED: Final = REACH["workspace-write"]
_MOST: Final = max(REACH.values())
# What a session begins with whose own mode is out of reach: the first of these that is allowed.
_PREFERRED: Final = ("workspace-write", "sandbox", "safe", "read-only")
# The same where the administrator alone sets bounds: the nearest below.
_NEAREST: Final = ("ask", *_PREFERRED)


def is_unlimited(identity: Identity) -> bool:
    """Return whether an identity may know of folders around the workspace, and of the user's own files for agents."""
    return not identity.confined and not identity.workspaces


def allowed_modes(identity: Identity, managed: ManagedSettings = NOTHING_MANAGED) -> list[str]:
    """Return the modes that are open to it, as they are shown. May try out what the machine can confine, once."""
    return [mode for mode in MODES if REACH[mode] <= _highest(identity) and managed.modes.permits(mode)]


def is_limited(identity: Identity) -> bool:
    """Return whether there is a mode it may not use."""
    return identity.confined or bool(identity.max_modes)


def nearest_mode(mode: str, identity: Identity, managed: ManagedSettings = NOTHING_MANAGED) -> str:
    """Return the mode, if it is open to this identity; else the one that takes its place, which reaches no further."""
    if not is_limited(identity) and managed.modes.permits(mode):
        return mode
    allowed = allowed_modes(identity, managed)
    if mode in allowed:
        return mode
    reach = REACH.get(mode, _LEAST)
    order = _PREFERRED if is_limited(identity) else _NEAREST
    return next(known for known in order if known in allowed and REACH[known] <= reach)


def check_mode(mode: str, identity: Identity, managed: ManagedSettings = NOTHING_MANAGED) -> None:
    """Refuse a mode that is not open to it."""
    if mode not in MODES:
        return
    if not managed.modes.permits(mode):
        allowed = ", ".join(allowed_modes(identity, managed))
        raise RequestFailed(INVALID_PARAMS, f"{_sentence(managed.says(f'mode {mode}'))}; there are {allowed}")
    if is_limited(identity) and mode not in (allowed_here := allowed_modes(identity, managed)):
        raise RequestFailed(
            INVALID_PARAMS, f"{identity.subject} may not use mode {mode}; it may use {', '.join(allowed_here)}"
        )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def check_folders(folders: Sequence[str], identity: Identity) -> None:
    """Refuse folders that do not lead into the workspaces of this identity, and to a confined one those with our own
    program: an identity that may change that is not confined the next time. Looks at the disk, for links."""
    for folder in folders if identity.workspaces else ():
        identity.check_folder(folder, os.path.realpath(folder))
    for folder in folders if identity.confined else ():
        real = os.path.realpath(folder)
        if any(is_inside(real, part) or is_inside(part, real) for part in _program()):
            reason = "it has the program in it that would confine its commands"
            raise RequestFailed(INVALID_PARAMS, f"{identity.subject} may not open {folder}: {reason}")


def check_not_private(folders: Sequence[str], private: Sequence[str]) -> None:
    """Refuse folders that are, or are in, a server's own data. Looks at the disk, for links."""
    for folder in folders if private else ():
        real = os.path.realpath(folder)
        if any(is_inside(real, os.path.realpath(path)) for path in private):
            raise RequestFailed(INVALID_PARAMS, f"{folder} belongs to this server itself; open another folder")


def may_answer(identity: Identity, needs: Needs) -> bool:
    """Return whether a yes of this identity counts for a question that needs so much."""
    if needs.leave and identity.confined:
        return False
    return not is_limited(identity) or needs.mode in allowed_modes(identity)


def may_write(identity: Identity) -> bool:
    """Return whether a mode is open to it in which files are written."""
    return any(MODES[mode].policy.edit != "deny" for mode in allowed_modes(identity))


def narrower_notice(mode: str, narrower: str, identity: Identity) -> str:
    """Return the notice for a turn that runs in another mode than the session has."""
    return f"This turn runs in mode {narrower}. {identity.subject} may not use mode {mode}"


def _highest(identity: Identity) -> int:
    ceilings = [REACH.get(mode, _LEAST) for mode in identity.max_modes]
    if identity.confined:
        ceilings.append(_CONFINED if _can_confine() else _LEAST)
    return min(ceilings, default=_MOST)


@functools.cache
def _program() -> tuple[str, ...]:
    """Return where our own code and the Python that runs it are."""
    prefixes = {sys.prefix, sys.base_prefix}
    folders = [os.path.dirname(os.path.dirname(__file__))]
    folders += [os.path.join(prefix, name) for prefix in prefixes for name in ("bin", "lib")]
    return tuple(os.path.realpath(folder) for folder in folders)


def _can_confine() -> bool:
    from dragoman.host.sandbox import probe

    return probe().level is not None
