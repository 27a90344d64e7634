"""Connect to the agent of `run` and `chat`, and open the session that is meant."""

import argparse
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from dragoman.cli.errors import CommandError
from dragoman.cli.target import Target

if TYPE_CHECKING:
    from dragoman.cli.offered_services import Offer
    from dragoman.client.connect import Client
    from dragoman.client.conversation import Conversation
    from dragoman.vocabulary.options import Select


async def connect_to(
    stack: AsyncExitStack,
    target: Target,
    folder: str,
    offer: "Offer",
    arguments: argparse.Namespace,
    settings: Mapping[str, Any],
) -> "Client":
    """Connect to the agent; the stack closes the connection. Our own is lent no files and terminals: it has them."""
    options: dict[str, Any] = {"permission": offer.permission} if target.ours else offer.callbacks()
    options |= {**settings, "protocol": arguments.protocol}
    stack.push_async_callback(offer.close)
    if arguments.trace is not None:
        from dragoman.cli.trace_file import trace_of

        options["trace"] = trace_of(arguments, "client")
    if target.registry is not None:
        return await stack.enter_async_context(target.registry.connect(target.name, **options))
    from dragoman.client.connect import connect

    if target.offered is not None:
        options = target.offered.select(options)
    return await stack.enter_async_context(connect(target.command, cwd=folder, env=target.env, **options))


async def find_own_session(given: str, folder: str = ".") -> tuple[str, str]:
    """Return the id and the folder of a stored session of our own agent.

    `given` is its id, the beginning of it, or its title, by the rules of `find_session`; `folder` is where a title is
    looked for first. Raise `CommandError` where no one session is meant.
    """
    from dragoman.cli.find_session import find_session
    from dragoman.cli.home import open_store
    from dragoman.store.contract import StoreFailed

    store = open_store()
    try:
        meta = await store.read_meta(await find_session(store, given, folder))
        return meta.id, meta.cwd
    except StoreFailed as failure:
        raise CommandError(f"session {given}: {failure}") from None
    finally:
        await store.close()


async def reopen_session(client: "Client", session_id: str, folder: str, *, replay: bool) -> "Conversation":
    """Reopen a session, with its history replayed or not, as far as the agent can. Raises `CommandError` if it cannot.

    An agent may say that it can do both and know only one of the methods: then that one is used.
    """
    from dragoman.errors import METHOD_NOT_FOUND, RequestFailed

    able = client.agent.capabilities
    if not able.resume and not able.load:
        raise CommandError("this agent cannot go on with an earlier session")
    ways = [(client.load_session, able.load), (client.resume_session, able.resume)]
    first, *others = [way for way, is_advertised in (ways if replay else ways[::-1]) if is_advertised]
    try:
        return await first(session_id, folder)
    except RequestFailed as error:
        if error.code != METHOD_NOT_FOUND or not others:
            raise
    return await others[0](session_id, folder)


async def set_chosen_options(
    conversation: "Conversation", target: Target, arguments: argparse.Namespace, *, is_reopened: bool
) -> None:
    """Set the mode, the model and the level of thought of the command line. Raises `CommandError` where one is refused.

    Our own agent was started with mode and model, but a session that is reopened has those that it had: what the user
    says now comes before them, or `--mode read-only` would run a session in whatever mode it was left in.
    """
    from dragoman.cli.text_width import harmless_line
    from dragoman.errors import RequestFailed, UsageError
    from dragoman.host.failure_text import failure_text

    is_told = target.ours and not is_reopened
    try:
        if arguments.mode is not None and not is_told:
            await _set_if_other(conversation, "mode", _wire_mode(arguments.mode, target))
        if arguments.model is not None and not is_told:
            await _set_if_other(conversation, "model", _wire_model(arguments.model, target))
        if arguments.thinking is not None:
            await _set_thinking(conversation, arguments.thinking)
    except UsageError as error:
        raise CommandError(str(error)) from None
    except RequestFailed as error:
        raise CommandError(
            f"the agent does not take that mode or model: {harmless_line(failure_text(error))}"
        ) from error


def chosen_option(conversation: "Conversation", category: str) -> "Select | None":
    """Return the option for the mode, the model or the level of thought, if the agent has one."""
    from dragoman.vocabulary.options import Select

    for option in conversation.options:
        if isinstance(option, Select) and category in (option.category, option.config_id):
            return option
    return None


async def _set_if_other(conversation: "Conversation", category: str, value: str) -> None:
    """Set an option; nothing where it has this value already. `UsageError` if the agent has no such option."""
    option = chosen_option(conversation, category)
    if option is None or option.current_value != value:
        await (conversation.set_mode if category == "mode" else conversation.set_model)(value)


def _wire_mode(mode: str, target: Target) -> str:
    from dragoman.cli.builtin_agent import MODE_ALIASES

    return MODE_ALIASES.get(mode, mode) if target.ours else mode


def _wire_model(model: str, target: Target) -> str:
    """Return the name on the wire: no client can name a script, but the one that our agent was started with."""
    return "script" if target.ours and model.lower().startswith("script:") else model


async def _set_thinking(conversation: "Conversation", level: str) -> None:
    option = chosen_option(conversation, "thought_level")
    if option is None:
        model = chosen_option(conversation, "model")
        what = "this agent" if model is None else f"the model {model.current_value}"
        raise CommandError(f"--thinking {level}: {what} has no levels of thought to choose from")
    levels = [choice.value for choice in option.choices()]
    if level not in levels:
        raise CommandError(f"--thinking {level}: there are {', '.join(levels)}")
    if option.current_value != level:
        await conversation.set_option(option.config_id, level)
