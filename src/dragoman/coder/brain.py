"""The coding agent, put together: an `Agent` whose every session has a `Coder`."""

from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Final, cast

from dragoman.agent.agent import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.coder.modes import DEFAULT_MODE, MODES
from dragoman.coder.setup import Setup
from dragoman.store.contract import Store
from dragoman.version import VERSION
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentCapabilities
from dragoman.vocabulary.options import MODE_CATEGORY, Choice, Select

if TYPE_CHECKING:
    from dragoman.coder.coder import Coder

_MEMORY: Final = "coder"
_MODEL_CATEGORY: Final = "model"


def coding_agent(
    setup: Setup,
    model: str,
    *,
    mode: str = DEFAULT_MODE,
    store: Store | Callable[[], Store] | None = None,
    resume: str | None = None,
    protocol: int | None = None,
) -> Agent:
    """Our agent. `model` is the one to begin with, by its name on the wire."""
    agent = Agent(
        "dragoman",
        version=VERSION,
        title="Dragoman",
        options=[mode_option(mode), model_option(model, setup)],
        capabilities=AgentCapabilities(
            embedded_context=True, image=True, list=True, close=True, mcp_http=True, mcp_sse=True
        ),
        store=store,
        resume=resume,
        hears_interjections=True,
        protocol=protocol,
    )

    @agent.session_opened
    async def opened(session: Session) -> None:
        # Imported with the first session: an editor that asks who we are has its answer before.
        from dragoman.coder.coder import Coder

        coder = session.memory[_MEMORY] = Coder(session, setup)
        await coder.open()

    @agent.session_closed
    async def closed(session: Session) -> None:
        await cast("Coder", session.memory[_MEMORY]).close()

    @agent.prompt
    def prompt(session: Session, prompt: Prompt) -> AsyncGenerator[AnyEvent, None]:
        return cast("Coder", session.memory[_MEMORY]).turn(prompt)

    return agent


def mode_option(mode: str) -> Select:
    """The session option that says what the agent may do."""
    choices = [Choice(value, known.name, known.description) for value, known in MODES.items()]
    return Select("mode", "Mode", mode, list(choices), "What the agent may do without asking", MODE_CATEGORY)


def model_option(model: str, setup: Setup) -> Select:
    """The session option that says who thinks."""
    choices = list(setup.models)
    if all(choice.value != model for choice in choices):
        choices.insert(0, Choice(model, model))
    return Select("model", "Model", model, list(choices), "Who thinks", _MODEL_CATEGORY)
