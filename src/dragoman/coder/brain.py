"""The coding agent, put together: a model for each session behind an `Agent`."""

from collections.abc import AsyncGenerator

from dragoman.agent.agent import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.coder import loop
from dragoman.coder.models.script import Script, ScriptModel
from dragoman.version import VERSION
from dragoman.vocabulary.events import AnyEvent


def scripted_agent(script: Script, *, protocol: int | None = None) -> Agent:
    """An agent that plays a script."""
    agent = Agent("dragoman", version=VERSION, title="Dragoman", protocol=protocol)

    @agent.session_opened
    async def opened(session: Session) -> None:
        session.memory["model"] = ScriptModel(script)

    @agent.prompt
    def prompt(session: Session, prompt: Prompt) -> AsyncGenerator[AnyEvent, None]:
        model = session.memory["model"]
        assert isinstance(model, ScriptModel)
        model.begin_turn()
        return loop.turn(model, prompt.text)

    return agent
