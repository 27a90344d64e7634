"""What a tool call would do: `CallFacts` with its `Action`s. Values, cheap to import: they are part of the start."""

from typing import Final, Literal, NamedTuple

# `other` touches files, and it is not known how; `mention` is a path that a command or a fetch has beside it, such as
# its folder; `foreign` is a tool of an MCP server, which may do anything; `free` does nothing outside of the
# conversation; `sandboxed` happens in a view of the workspace, and the user has to approve it before it counts.
ActionKind = Literal["read", "edit", "execute", "fetch", "other", "mention", "foreign", "free", "sandboxed"]

_OF_FILES: Final = frozenset({"read", "edit", "other", "mention"})


class Action(NamedTuple):
    """One thing a call would do: one read, write, command or connection.

    `subject` is what it is done to: a path, a command line, an address, a tool. `guarded` needs a yes even where its
    kind does not; `harmless` is a command known to only read. `blocked_reason` is why it never runs.
    `paths_in_workspace` are the paths that a command reads, as it names them, and that lie in the workspace.
    `unconfined` is why a command would run without the confinement that its mode promises: only after a yes to this
    very call. `portable`: it is not known that bash reads the command. `is_known`: an agent may say that it does such a
    thing and not to what; then there is no subject. `confined`: a command that will be kept in its confinement whatever
    mode there is when it runs, and the confinement was tried out. `kind_in_view`: what a sandboxed action does in the
    view; empty: it is none.
    """

    kind: ActionKind
    subject: str = ""
    guarded: bool = False
    harmless: bool = False
    blocked_reason: str = ""
    paths_in_workspace: tuple[str, ...] = ()
    unconfined: str = ""
    portable: bool = False
    is_known: bool = True
    confined: bool = False
    kind_in_view: "ActionKind | Literal['']" = ""

    @property
    def is_of_file(self) -> bool:
        """Whether the subject is a path."""
        return self.kind in _OF_FILES and self.is_known


class CallFacts(NamedTuple):
    """All that is known of a tool call. The first of its actions is the most serious thing that it does.

    `unclear` is why the actions may not be all of it. `is_cut`: it carries more than was read, and a rule against
    anything may be about that. `tool` is the name of one of our own tools; empty for the calls of other agents, whose
    names for their tools mean nothing.
    """

    actions: tuple[Action, ...]
    unclear: str = ""
    is_cut: bool = False
    tool: str = ""

    @property
    def kind(self) -> ActionKind:
        """The most serious thing that it is."""
        return self.actions[0].kind

    @property
    def kinds(self) -> frozenset[ActionKind]:
        """Everything it may be, for rules that say no: a change may be called anything."""
        found = {action.kind for action in self.actions}
        if "foreign" in found:
            found.add("other")
        return frozenset(found | {"edit"} if self.kind in ("other", "foreign") else found)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files and folders that it names."""
        return tuple(action.subject for action in self.actions if action.is_of_file)

    @property
    def commands(self) -> tuple[Action, ...]:
        """The commands that it is known to run."""
        return tuple(action for action in self.actions if action.kind == "execute" and action.is_known)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses that it is known to reach for."""
        return tuple(action.subject for action in self.actions if action.kind == "fetch" and action.is_known)
