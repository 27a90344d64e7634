"""How an agent has failed, in words that say what to do: `run` and `chat` say it alike."""

from typing import Final

from dragoman.cli.errors import USAGE
from dragoman.cli.target import Target
from dragoman.errors import INTERNAL_ERROR, AuthRequired, ChildExited, DragomanError, RequestFailed
from dragoman.host.failure_text import failure_text

# Of what our own store and its kin say, the part that a person can mend is where they are.
_STORE: Final = ("session store", "session's file", "the disk", "cannot be stored")


def refusal_of_own_agent(error: DragomanError, target: Target) -> str | None:
    """Return why our own agent refused its command line; None if it failed otherwise."""
    if not target.ours or not isinstance(error, ChildExited) or error.exit_code != USAGE:
        return None
    return error.stderr_tail.strip().removeprefix("dragoman: ") or None


def failure_sentence(error: DragomanError, target: Target, *, greeted: bool) -> str:
    """Return what to tell a person. `greeted`: the agent had answered `initialize` before."""
    sentence = failure_text(error)
    if isinstance(error, AuthRequired):
        withheld = "" if target.ours else _withheld_keys_text(target)
        if "log in" in sentence.lower() or "login" in sentence.lower():
            return sentence + withheld
        how = "`dragoman login` helps" if target.ours else "log in with the agent's own program"
        return f"{sentence.rstrip('.')}: {how}{withheld}"
    if not greeted and not target.ours and isinstance(error, ChildExited):
        ending, newline, rest = sentence.partition("\n")
        ending = ending.removesuffix(" It last wrote to stderr:").removesuffix(".")
        stderr_text = f" It last wrote to stderr:\n{rest}" if newline else ""
        return f"{ending} before it answered; it may not speak ACP.{stderr_text}"
    if target.ours and isinstance(error, RequestFailed) and any(mark in error.message for mark in _STORE):
        from dragoman.cli.home import own_file

        folder = own_file("sessions").parent
        return f"{sentence}; sessions are kept in {folder}, and DRAGOMAN_HOME can name another folder"
    return sentence


def _withheld_keys_text(target: Target) -> str:
    """Return a sentence about keys that the agent may want and was not given, and how to pass them on."""
    import os

    from dragoman.client.known_agents import KNOWN

    entry = None if target.registry is None else target.registry.entry(target.name)
    if entry is not None and entry.url:
        return ""  # no variable of ours reaches it
    name = target.known if entry is None else target.name
    wanted = [key for known in ([KNOWN[name]] if name in KNOWN else KNOWN.values()) for key in known.key_variables]
    given = set(target.env or ()) if entry is None else {*entry.key_variables, *entry.env}
    withheld = [key for key in dict.fromkeys(wanted) if os.environ.get(key) and key not in given]
    if not withheld:
        return ""
    verb = "is set here and was" if len(withheld) == 1 else "are set here and were"
    sentence = f". {', '.join(withheld)} {verb} not passed on"
    if target.withheld_reason:
        return f"{sentence}: {target.withheld_reason}. `--agent {name}` passes what {name} needs"
    first = "`dragoman agents add NAME -- CMD`, then " if entry is None else ""
    setting = f'"env": {{"{withheld[0]}": "${withheld[0]}"}} of {"NAME" if entry is None else name} in acp.json'
    return f"{sentence}; to pass one: {first}{setting}"


def error_fields(error: BaseException | None) -> dict[str, object]:
    """Return an error as `--json` and `--stream-json` has it: an error answer with its code and all of its data."""
    if not isinstance(error, RequestFailed):
        return {"message": str(error)}
    fields: dict[str, object] = {"code": error.code, "message": error.message}
    return fields if error.data is None else fields | {"data": error.data}


def is_a_bug(error: DragomanError) -> bool:
    """Return whether the agent says no more than that something in it went wrong; then its stderr may say what."""
    return isinstance(error, RequestFailed) and error.code == INTERNAL_ERROR
