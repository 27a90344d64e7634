"""Sets one session option: checks the new value, returns the options with it, words the error if it does not fit."""

from typing import Final

from msgspec.structs import replace

from dragoman.errors import INVALID_PARAMS, RequestFailed, echo, echo_in_words
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.options import Choice, Option, Select, Toggle

# Values named in an error about an unknown one: a sentence, not a page.
_NAMED: Final = 20
_NAMED_CHARACTERS: Final = 80


def options_with(options: list[Option], request: ask.SetOption, *, open_models: bool) -> list[Option]:
    """Return the options with one new value; `RequestFailed` for an option or a value that does not exist."""
    for place, known in enumerate(options):
        if isinstance(known, (Select, Toggle)) and known.config_id == request.config_id:
            option = _with_model(known, request.value) if open_models else known
            if not _fits(option, request.value):
                unfit = _no_such_value(option, request.value)
                raise RequestFailed(INVALID_PARAMS, unfit, {"configId": echo(request.config_id)})
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
    if isinstance(option, Toggle):
        return isinstance(value, bool)
    return value in [choice.value for choice in option.choices()]
