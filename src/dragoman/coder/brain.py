"""The coding agent, put together: a model, tools and a gate for each session, behind an `Agent`."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Final, Literal, cast

from dragoman.agent.agent import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.coder import loop
from dragoman.coder.changes import Changes
from dragoman.coder.context import Context, UserSaid, load
from dragoman.coder.instructions import system_prompt
from dragoman.coder.models.contract import Model
from dragoman.coder.permissions import DEFAULT_MODE, MODES, Gate, Rule
from dragoman.coder.toolbox import Toolbox
from dragoman.coder.tools.bash import Bash, command_environment
from dragoman.coder.tools.contract import Desk, Tool
from dragoman.coder.tools.reading import ReadFile
from dragoman.coder.tools.talking import AskUser, UpdatePlan
from dragoman.coder.tools.writing import EditFile, WriteFile
from dragoman.host.environment import child_environment
from dragoman.host.guardian import Guardian
from dragoman.host.paths import Roots
from dragoman.store.contract import Store
from dragoman.version import VERSION
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.options import MODE_CATEGORY, Choice, Select

_RULE: Final = "rule"
_MEMORY: Final = "coder"


def coding_agent(
    make_model: Callable[[], Model],
    *,
    environment: Mapping[str, str],
    store: Store | Callable[[], Store] | None = None,
    mode: str = DEFAULT_MODE,
    resume: str | None = None,
    protocol: int | None = None,
) -> Agent:
    """Our agent. `environment` is what commands may see of this process's, secrets left out."""
    agent = Agent(
        "dragoman",
        version=VERSION,
        title="Dragoman",
        options=[mode_option(mode)],
        store=store,
        resume=resume,
        protocol=protocol,
    )
    guardian = Guardian()

    @agent.session_opened
    async def opened(session: Session) -> None:
        session.memory[_MEMORY] = Coder(session, make_model(), environment, guardian)

    @agent.prompt
    def prompt(session: Session, prompt: Prompt) -> AsyncGenerator[AnyEvent, None]:
        return cast(Coder, session.memory[_MEMORY]).turn(prompt)

    return agent


def mode_option(mode: str) -> Select:
    """The session option that says what the agent may do."""
    choices = [Choice(value, known.name, known.description) for value, known in MODES.items()]
    return Select("mode", "Mode", mode, list(choices), "What the agent may do without asking", MODE_CATEGORY)


class Coder:
    """Our agent in one session. Nothing is read or made before the first prompt: most sessions are only opened."""

    def __init__(self, session: Session, model: Model, environment: Mapping[str, str], guardian: Guardian) -> None:
        self._session = session
        self._model = model
        self._environment = environment
        self._guardian = guardian
        self._context: Context | None = None
        self._toolbox: Toolbox | None = None

    async def turn(self, prompt: Prompt) -> AsyncGenerator[AnyEvent, None]:
        """One prompt, to its end."""
        context, toolbox = await self._ready()
        toolbox.begin_turn()
        self._model.begin_turn()
        system = system_prompt(self._session.cwd, self._mode())
        said = UserSaid(prompt.message_id, prompt.content)
        async with aclosing(loop.turn(self._model, context, toolbox, said, system=system)) as events:
            async for event in events:
                yield event

    async def _ready(self) -> tuple[Context, Toolbox]:
        if self._context is None or self._toolbox is None:
            context = await load(self._session)
            rules = [Rule(*cast(tuple[Literal["allow", "deny"], str, str], rule)) for rule in await self._rules()]
            gate = Gate(self._mode, rules, self._remember)
            environment = command_environment(child_environment(self._environment))
            desk = Desk(self._session, Roots(self._session.roots), environment, self._guardian, Changes())
            tools: list[Tool] = [ReadFile(), WriteFile(), EditFile(), Bash(), UpdatePlan(), AskUser()]
            self._context, self._toolbox = context, Toolbox(tools, gate, desk)
        return self._context, self._toolbox

    def _mode(self) -> str:
        return str(self._session.option("mode"))

    async def _rules(self) -> list[object]:
        return [rule for rule in await self._session.recall(_RULE) if isinstance(rule, list) and len(rule) == 3]

    async def _remember(self, rule: Rule) -> None:
        await self._session.remember(_RULE, list(rule))
