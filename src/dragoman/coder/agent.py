"""The coding agent, put together: an `Agent` whose every session has a `CodingSession`.

Cheap to import: an editor that asks who we are has its answer before the rest of us is loaded.
"""

from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Final, cast

from dragoman.agent.agent import Agent, agent_core
from dragoman.agent.session import Prompt, Session, caller
from dragoman.coder.model_registry import METHODS
from dragoman.coder.setup import Setup
from dragoman.coder.worktree_folders import WorktreeFolders
from dragoman.version import VERSION
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentCapabilities

if TYPE_CHECKING:
    from dragoman.coder.session import CodingSession
    from dragoman.store.contract import Store
    from dragoman.vocabulary.requests import AuthStatus, RewindSession, SessionRewound

_MEMORY: Final = "coder"
_CAPABILITIES: Final = AgentCapabilities(
    embedded_context=True,
    image=True,
    list=True,
    close=True,
    mcp_http=True,
    mcp_sse=True,
    mcp_acp=True,
    auth_status=True,
)


def coding_agent(
    setup: Setup,
    *,
    store: "Store | Callable[[], Store] | None" = None,
    resume: str | None = None,
    protocol: int | None = None,
    dialect: str | None = None,
) -> Agent:
    """Return our coding agent."""
    agent = Agent(
        "dragoman",
        version=VERSION,
        title="Dragoman",
        capabilities=_CAPABILITIES,
        auth_methods=METHODS,
        store=store,
        resume=resume,
        steering=True,
        protocol=protocol,
        dialect=dialect,
    )

    @agent.session_opened
    async def opened(session: Session) -> None:
        from dragoman.coder.session import CodingSession

        coder = session.memory[_MEMORY] = CodingSession(session, setup)
        await coder.open()

    @agent.session_closed
    async def closed(session: Session) -> None:
        await _coder(session).close()

    @agent.prompt
    def prompt(session: Session, prompt: Prompt) -> AsyncGenerator[AnyEvent, None]:
        return _coder(session).turn(prompt)

    @agent.option_changed
    async def option_changed(session: Session, config_id: str, value: object) -> None:
        await _coder(session).option_changed(config_id)

    core = agent_core(agent)
    core.folders = WorktreeFolders(setup.environment, setup.worktree, setup.worktrees)
    core.option_checks.append(lambda session, config_id, value: _coder(session).option_refused(config_id, str(value)))

    async def rewind(session: Session, request: "RewindSession") -> "SessionRewound":
        return await _coder(session).rewind(request)

    core.rewind_handler = rewind

    async def deleted(session_id: str) -> None:
        if setup.home:
            from asyncio import to_thread

            from dragoman.coder.checkpoints.cleaning import forget_session

            await to_thread(forget_session, setup.home, session_id)

    core.deletion_handlers.append(deleted)
    core.prompt_checks.append(lambda session, prompt: _check_media(prompt))
    core.option_setters["model"] = lambda session, value: _coder(session).options.with_model(value)

    @agent.login
    async def login(method_id: str) -> None:
        caller().check_admin("log in")
        setup.models.login(method_id)

    @agent.logout
    async def logout() -> None:
        caller().check_admin("log out")
        setup.models.logout()

    @agent.auth_status
    async def auth_status() -> "AuthStatus":
        return setup.models.status()

    return agent


def _check_media(prompt: Prompt) -> None:
    from dragoman.coder.prompt_content import check_media

    check_media(prompt.content)


def _coder(session: Session) -> "CodingSession":
    return cast("CodingSession", session.memory[_MEMORY])
