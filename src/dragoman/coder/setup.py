"""What is the same for every session of one process. Cheap to import: it is part of the start."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dragoman.vocabulary.options import Choice

if TYPE_CHECKING:
    from dragoman.coder.models.contract import Model
    from dragoman.host.guardian import Guardian
    from dragoman.vocabulary.requests import McpServer

# Model calls in one turn, unless somebody says otherwise.
MODEL_CALLS: Final = 100


class Setup:
    """Models, environment, data folder.

    `make_model` makes a model by its name as the wire has it. `environment` is this process's; commands see of it what
    is no secret. `home` is our data folder; None: there is none. `servers` has the user's own MCP servers for a folder.
    """

    def __init__(
        self,
        make_model: "Callable[[str], Model]",
        environment: Mapping[str, str],
        *,
        models: Sequence[Choice] = (),
        home: Path | None = None,
        model_calls: int = MODEL_CALLS,
        servers: "Callable[[str], Sequence[McpServer]]" = lambda cwd: (),
    ) -> None:
        self.make_model: Final = make_model
        self.environment: Final = environment
        self.models: Final = models
        self.home: Final = home
        self.model_calls: Final = model_calls
        self.servers: Final = servers
        self._guardian: Guardian | None = None

    def guardian(self) -> "Guardian":
        """What kills what we started, if we are killed."""
        if self._guardian is None:
            from dragoman.host.guardian import Guardian

            self._guardian = Guardian()
        return self._guardian

    def close(self) -> None:
        """Nothing is left to guard."""
        if self._guardian is not None:
            self._guardian.close()
