"""How an agent has failed, in words that say what to do: `run` and `chat` say it alike."""

from typing import Final

from dragoman.cli.target import Target
from dragoman.errors import INTERNAL_ERROR, AuthRequired, DragomanError, RequestFailed

USAGE: Final = 2
# Of what our own store and its kin say, the part that a person can mend is where they are.
_STORE: Final = ("session store", "session's file", "the disk", "cannot be stored")


def own_complaint(error: DragomanError, target: Target) -> str | None:
    """What our own agent did not like about its command line; None if it was something else."""
    if not target.ours or getattr(error, "exit_code", None) != USAGE:
        return None
    told = str(getattr(error, "stderr_tail", "")).strip()
    return told.removeprefix("dragoman: ") or None


def failure_words(error: DragomanError, target: Target, *, greeted: bool) -> str:
    """What to tell a person. `greeted`: the agent had answered `initialize` before."""
    words = str(error)
    if isinstance(error, AuthRequired):
        if "log in" in error.message.lower() or "login" in error.message.lower():
            return error.message
        how = "`dragoman login` helps" if target.ours else "log in with the agent's own program"
        return f"{error.message.rstrip('.')}: {how}"
    if not greeted and not target.ours and hasattr(error, "exit_code"):
        ending, newline, rest = words.partition("\n")
        ending = ending.removesuffix(" It last wrote to stderr:").removesuffix(".")
        told = f" It last wrote to stderr:\n{rest}" if newline else ""
        return f"{ending} before it answered; it may not speak ACP.{told}"
    if target.ours and isinstance(error, RequestFailed) and any(mark in error.message for mark in _STORE):
        from dragoman.cli.home import home_folder

        return f"{words}; sessions are kept in {home_folder()}, and DRAGOMAN_HOME can name another folder"
    return words


def is_a_bug(error: DragomanError) -> bool:
    """Whether the agent says no more than that something in it went wrong; then its stderr may say what."""
    return isinstance(error, RequestFailed) and error.code == INTERNAL_ERROR
