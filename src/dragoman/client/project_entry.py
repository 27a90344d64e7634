"""Agents of a project's `acp.json`: what counts of them. A project may only be stricter than the user.

What it says to allow (`permissionPolicy: auto-approve`, `nonInteractivePolicy: accept_all`, `allow` rules, files and
terminals lent beyond the default) counts only as far as the user's own file says the same of the very same agent; what
it forbids counts always, and so does what the user's file forbids. Without an entry of the user the default is: ask,
reject where no user can be asked, no rules; files, terminals and forms for a program, forms alone for an address.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from dragoman.client.agent_entry import AgentEntry, PolicyName
from dragoman.client.offered_capabilities import EVERYTHING, FORMS_ONLY, OfferedCapabilities
from dragoman.client.registry_file import RegistryFile, Terms, project_folder
from dragoman.host.trust import TrustState

_STRICTNESS: Final[tuple[PolicyName, ...]] = ("auto-approve", "prompt", "deny")
_LENT: Final = {"read": "reading files", "write": "writing files", "terminal": "terminals", "elicitation": "forms"}


class LimitedEntry(NamedTuple):
    """An entry as it counts, and what of it does not, in words."""

    entry: AgentEntry
    ignored: tuple[str, ...] = ()


def project_entries(
    path: Path, read: RegistryFile, own: Mapping[str, AgentEntry], terms: Terms, trust_state: TrustState
) -> dict[str, LimitedEntry]:
    """Return what counts of a project's file. `own`: the agents without it; `terms`: the user's, for all agents."""
    folder = project_folder(path)
    secrets = trust_state.trust.secrets
    return {
        name: limit_entry(given, own.get(name), terms, str(folder), frozenset(secrets.get(part_of(path, name), ())))
        for name, given in read.entries.items()
    }


def part_of(path: Path, name: str) -> str:
    """Return how trust names an agent of a project's file."""
    return f"{path.relative_to(project_folder(path)).as_posix()} {name}"


def limit_entry(
    given: AgentEntry, own: AgentEntry | None, terms: Terms, folder: str, allowed: frozenset[str]
) -> LimitedEntry:
    """Return what counts of a project's entry.

    `own` is the user's entry, or a built-in one, of that name; `terms` is what the user's file says for all. `folder`
    is the project's; `allowed` are the secrets that the user lets it have.
    """
    same = own is not None and _launch(own) == _launch(given)
    floor = terms if own is None or own.built_in else own
    most = own if same and own is not None else AgentEntry("", "")
    policy = max(given.permission_policy, most.permission_policy, floor.permission_policy, key=_STRICTNESS.index)
    kept = tuple(rule for rule in (*floor.rules, *given.rules) if rule.effect != "allow")
    counted = replace(
        given,
        permission_policy=policy,
        non_interactive=given.non_interactive if most.non_interactive == "accept_all" else "reject_all",
        rules=tuple(dict.fromkeys((*kept, *(rule for rule in most.rules if rule.effect == "allow")))),
        offered=_both(given.offered, _lendable(given, own, same=same)),
    )
    if not same:
        counted = _at_home(counted, folder, allowed)
    return LimitedEntry(counted, tuple(_ignored(given, counted)))


def _launch(entry: AgentEntry) -> tuple[object, ...]:
    where = (entry.url, entry.token, entry.token_file, entry.ca_file)
    return (entry.command, entry.args, dict(entry.env), entry.cwd, entry.mcp_servers, *where)


def _lendable(given: AgentEntry, own: AgentEntry | None, *, same: bool) -> OfferedCapabilities:
    if same and own is not None:
        return own.offered
    default = FORMS_ONLY if given.url else EVERYTHING
    return default if own is None else _both(default, own.offered)


def _both(one: OfferedCapabilities, other: OfferedCapabilities) -> OfferedCapabilities:
    return OfferedCapabilities(**{name: getattr(one, name) and getattr(other, name) for name in _LENT})


def _at_home(entry: AgentEntry, folder: str, allowed: frozenset[str]) -> AgentEntry:
    """Start a project's program in its folder: relative names lead to the files that were trusted."""
    entry = replace(entry, project=folder, allowed_secrets=allowed)
    if entry.url:
        return entry
    cwd = entry.cwd or folder
    command = entry.command
    if "/" in command and "$" not in cwd:
        command = os.path.join(cwd, command.removeprefix("./"))
    return replace(entry, cwd=cwd, command=command)


def _ignored(given: AgentEntry, counted: AgentEntry) -> Iterator[str]:
    if counted.permission_policy != given.permission_policy:
        yield f"permissionPolicy {given.permission_policy} ({counted.permission_policy} counts)"
    if counted.non_interactive != given.non_interactive:
        yield f"nonInteractivePolicy {given.non_interactive} ({counted.non_interactive} counts)"
    yield from (str(rule).removeprefix("the ") for rule in given.rules if rule not in counted.rules)
    lost = [what for name, what in _LENT.items() if getattr(given.offered, name) and not getattr(counted.offered, name)]
    if lost:
        yield f"capabilities: {', '.join(lost)}"
