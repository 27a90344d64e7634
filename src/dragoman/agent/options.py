"""Set one session option: check the new value, ask the author's handlers, store it, reply with all options.

The value counts for the running turn at once, before handlers and disk have seen it. If one of them fails the former
options come back, unless something else has set options meanwhile.
"""

from collections.abc import Awaitable
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from dragoman.agent.journal import store_option
from dragoman.errors import INVALID_PARAMS, RequestFailed, echo, echo_in_words
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.asking import Reply
from dragoman.vocabulary.options import Choice, Option, Select, Toggle

if TYPE_CHECKING:
    from dragoman.agent.author_handlers import AgentCore
    from dragoman.agent.session_core import SessionCore

# Values named in an error about an unknown one: a sentence, not a page.
_NAMED: Final = 20
_NAMED_CHARACTERS: Final = 80
_value_of: Final = attrgetter("value")


def set_option(agent: "AgentCore", core: "SessionCore", request: ask.SetOption) -> Reply | Awaitable[Reply]:
    """Set an option of a session and return the reply, or what waits for it. `RequestFailed` for an unfit value."""
    before = core.options
    # An option that takes more values than it lists, such as a model by name: only its owner can check the value.
    setter = agent.option_setters.get(request.config_id)
    if setter is not None:
        after = setter(core.session, request.value)
    else:
        after = options_with(before, request, open_models=agent.rules.accepts_unlisted_models)
    # Before the value counts: a turn of another client may run and would be judged by it.
    for check in agent.option_checks:
        refusal = check(core.session, request.config_id, request.value)
        if refusal is not None:
            return refusal
    # In the same step as the check: nothing can come between.
    core.options = after
    if agent.option_handlers or core.journal is not None:
        return _confirm(agent, core, request, before)
    return ask.OptionsSet(core.options)


async def _confirm(agent: "AgentCore", core: "SessionCore", request: ask.SetOption, before: list[Option]) -> Reply:
    # A setter may have spelled the value in another way.
    after, value = core.options, core.session.option(request.config_id)
    try:
        for handler in agent.option_handlers:
            await handler(core.session, request.config_id, value)
        await store_option(core, request.config_id, value)
    except BaseException:
        if core.options is after:
            core.options = before  # the client is told that it failed, so it did
        raise
    return ask.OptionsSet(core.options)


def options_with(options: list[Option], request: ask.SetOption, *, open_models: bool) -> list[Option]:
    """Return the options with one new value; `RequestFailed` for an option or a value that does not exist."""
    for place, known in enumerate(options):
        if isinstance(known, (Select, Toggle)) and known.config_id == request.config_id:
            option = _with_model(known, request.value) if open_models else known
            if not _fits(option, request.value):
                unfit = _no_such_value(option, request.value)
                raise RequestFailed(INVALID_PARAMS, unfit, {"configId": echo(request.config_id)})
            # A new list: `_confirm` compares identities to see whether options were set again meanwhile.
            after = options.copy()
            after[place] = replace(option, current_value=request.value)
            return after
    known_ids = [option.config_id for option in options if isinstance(option, (Select, Toggle))]
    unknown = f"No such option {_quote(request.config_id)}; {_list_text(known_ids)}"
    raise RequestFailed(INVALID_PARAMS, unknown, {"configId": echo(request.config_id)})


def _no_such_value(option: Select | Toggle, value: object) -> str:
    """Say which value was given to which option, and which ones it takes."""
    given = f"No such value {_quote(value)} for {option.config_id}"
    if isinstance(option, Toggle):
        return f"{given}; it is true or false"
    return f"{given}; {_list_text([choice.value for choice in option.choices()])}"


def _list_text(names: list[str]) -> str:
    """Return the first of these names as the end of a sentence: `there are a, b, …`."""
    if not names:
        return "there are none"
    more = ", …" if len(names) > _NAMED else ""
    return f"there are {', '.join(name[:_NAMED_CHARACTERS] for name in names[:_NAMED])}{more}"


def _quote(value: object) -> str:
    """Return a value that a client sent as it may stand in an error message."""
    if not isinstance(value, str):
        return str(value).lower() if isinstance(value, bool) else "of an unknown type"
    return f"'{echo_in_words(value)}'"


def _with_model(option: Select | Toggle, value: object) -> Select | Toggle:
    """Return the model option with `value` among its choices; the author's handler decides whether the model exists."""
    if not isinstance(option, Select) or not isinstance(value, str):
        return option
    if option.category != "model" or _fits(option, value):
        return option
    return replace(option, options=[*option.options, Choice(value, value)])


def _fits(option: Select | Toggle, value: object) -> bool:
    if isinstance(option, Select):
        return value in map(_value_of, option.choices())
    return isinstance(value, bool)
