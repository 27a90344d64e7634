"""What one confined command may have, and how it is kept to it: a control group where there can be one, else limits of
its process. Says afterwards which limit was met."""

from typing import Final

from dragoman.host.cgroups import CommandGroup
from dragoman.host.resources import ProcessLimits, ResourceLimits, hint


class CommandLimits:
    """The limits of one command. Blocks when made: tries once what the machine offers. `close` after the command."""

    def __init__(self, wanted: ResourceLimits, *, namespace: bool) -> None:
        """`namespace`: the command has a user namespace of its own."""
        self.wanted: Final = wanted
        self._group = CommandGroup.make(wanted) if wanted.memory or wanted.processes else None
        controllers = () if self._group is None else self._group.controllers
        self.process: Final = ProcessLimits.of(wanted, controllers, namespace=namespace)

    @property
    def watched(self) -> ResourceLimits | None:
        """The limits, if no control group keeps the whole command to them: for `UsageWatch`."""
        return self.wanted if self._group is None and any(self.wanted) else None

    @property
    def entrances(self) -> list[str]:
        """Files into which the first process of the command has to write its number."""
        return [] if self._group is None else [self._group.entrance]

    def excess(self, text: str, *, failed: bool) -> str | None:
        """Return which limit the command has met, in a sentence, by the kernel's count or else by what it printed."""
        if self._group is not None and (excess_text := self._group.excess()):
            return excess_text
        # A shell that cannot fork says so and may still end well: a bomb does.
        return hint(text, self.process, self.wanted) if failed or "fork: " in text else None

    def close(self) -> None:
        """Take the control group away."""
        if self._group is not None:
            self._group.close()
