"""The options of one session: mode, model and level of thought, and the models that were made for them."""

from collections.abc import Sequence
from typing import Final, TypeGuard

from dragoman.agent.session import Session, session_core
from dragoman.coder.identity_limits import nearest_mode
from dragoman.coder.managed_settings import ManagedSettings
from dragoman.coder.models.contract import Closing, FindsWindow, HasThoughtLevels, Model
from dragoman.coder.modes import MODES
from dragoman.coder.setup import Setup
from dragoman.errors import AUTH_REQUIRED, INVALID_PARAMS, RequestFailed, echo_in_words
from dragoman.vocabulary.identity import Identity
from dragoman.vocabulary.options import MODE_CATEGORY, Choice, Option, Select

_ABOUT_MODELS: Final = "The model to use. A provider's models are here when its key is: dragoman login PROVIDER"
# Models that were named by hand and are still offered; and models in a sentence.
_MOST_NAMED: Final = 20
_MOST_SAID: Final = 8


class SessionOptions:
    """Makes the options of a session and knows the models behind them. The values themselves are `Session.options`."""

    def __init__(self, session: Session, setup: Setup) -> None:
        self._session = session
        self._setup = setup
        self._models: dict[str, Model] = {}
        # Models that were named by hand, the last one at the end; and the level of thought that was chosen by hand,
        # which counts for every model that has it.
        self._named: list[str] = []
        self._thought_level = str(session_core(session).stored_options.get("thought_level", ""))
        # Why the session could not be opened with the model that it had; empty: it has it, or had none.
        self.lost_model = ""

    def initial(self, model: str, identity: Identity) -> list[Option]:
        """Return the options of a session that opens, with this model; the mode is one that the identity may use."""
        managed = self._setup.managed
        wanted = self._forbidden_mode() or self._setup.mode
        return [_mode_option(nearest_mode(wanted, identity, managed), managed), *self._model_options(model)]

    def lost_mode(self) -> str:
        """Return why the session goes on in another mode than it had when it was last open; empty: it does not."""
        former = self._forbidden_mode()
        if not former:
            return ""
        reason = self._setup.managed.says(f"mode {former}")
        return f"This session goes on in mode {self._session.option('mode')}, not in {former}: {reason}."

    def _forbidden_mode(self) -> str:
        """Return the mode that the session had when it was last open, if the administrator does not permit it now."""
        stored = session_core(self._session).stored_options.get("mode")
        is_mode = isinstance(stored, str) and stored in MODES
        return str(stored) if is_mode and not self._setup.managed.modes.permits(str(stored)) else ""

    def remember_thought_level(self) -> None:
        """Prefer the level that is set now, also for models that are chosen later."""
        self._thought_level = str(self._session.option("thought_level"))

    async def close_models(self) -> None:
        """Close the models that hold connections or processes."""
        for model in self._models.values():
            if isinstance(model, Closing):
                await model.close()

    async def forget_unknown_windows(self) -> None:
        """Have models made anew whose window was not known: a provider's list that has come since may say it.

        A turn that runs keeps the model that it began with.
        """
        unknown = [name for name, model in self._models.items() if model.window is None]
        for name in unknown:
            if isinstance(self._models[name], FindsWindow):
                model = self._models.pop(name)
                if isinstance(model, Closing):
                    await model.close()

    @property
    def model(self) -> Model:
        """The model that is chosen now."""
        return self.find_model(str(self._session.option("model")))

    def find_model(self, name: str) -> Model:
        """Return the model of this name; it is made once. Raises `RequestFailed` where it cannot be had."""
        if name not in self._models:
            self._models[name] = self._setup.models.make(name)
        return self._models[name]

    def model_named(self, name: str) -> Model:
        """Return a model by whatever name a user writes for it. Raises `RequestFailed` where it cannot be had."""
        return self.find_model(self._setup.models.wire_name(name, str(self._session.option("model"))))

    def with_model(self, value: object) -> list[Option]:
        """Return the options of the session once this is its model, however its name is written.

        A model that was not listed is one of the choices from then on, and the levels of thought are those of the
        model. Raises `RequestFailed` (-32602) for a name that means no model, or one that cannot be had.
        """
        if not isinstance(value, str):
            raise RequestFailed(INVALID_PARAMS, f"A model is named by text. {self._models_text()}")
        try:
            name = self._setup.models.wire_name(value, str(self._session.option("model")))
        except RequestFailed as error:
            more = f" {self._models_text()}" if error.code == INVALID_PARAMS else ""
            raise RequestFailed(error.code, f"{error.message}{more}", error.data) from None
        try:
            self.find_model(name)
        except RequestFailed as error:
            # Not the code for a missing login: clients take that for the session, which goes on as it is.
            code = INVALID_PARAMS if error.code == AUTH_REQUIRED else error.code
            raise RequestFailed(code, error.message) from None
        others = [option for option in self._session.options if not is_option(option, "model")]
        return [*(option for option in others if not is_option(option, "thought_level")), *self._model_options(name)]

    def _model_options(self, current: str) -> list[Option]:
        """Return the option for the model, and the one for its level of thought where it has levels."""
        choices = {choice.value: choice for choice in self._setup.models.choices()}
        if current not in choices:
            self._named = [*(name for name in self._named if name != current), current][-_MOST_NAMED:]
        for name in self._named:
            choices.setdefault(name, Choice(name, name))
        # A turn that runs keeps the model that it began with.
        self._models = {name: model for name, model in self._models.items() if name in choices}
        options: list[Option] = [Select("model", "Model", current, [*choices.values()], _ABOUT_MODELS, "model")]
        model = self.find_model(current)
        if isinstance(model, HasThoughtLevels) and (levels := model.thought_levels):
            preferred = [level for level in (self._thought_level, self._setup.thought_level) if level in levels]
            options.append(_thought_option(levels, [*preferred, levels[0]][0]))
        return options

    def _models_text(self) -> str:
        names = [choice.value for choice in self._setup.models.choices()]
        some = ", ".join(names[:_MOST_SAID]) + (", …" if len(names) > _MOST_SAID else "")
        return f"Models to choose from: {some}; any other model of a provider with a key can be named too."

    def first_model(self) -> str:
        """Return the model to open the session with: the one that it had when it was last open, else the current one.

        Where the former model cannot be used any more, `lost_model` says why.
        """
        stored = session_core(self._session).stored_options.get("model")
        current = self._setup.models.current()
        if isinstance(stored, str):
            try:
                name = self._setup.models.wire_name(stored)  # as a client might name it: no script, no file
                self.find_model(name)
                return name
            except RequestFailed as error:
                former = echo_in_words(stored)
                self.lost_model = f"This session goes on with {current}, not with {former}: {error.message}"
        return current


def _mode_option(mode: str, managed: ManagedSettings) -> Select:
    """Return the option for the mode, with the modes that the administrator permits."""
    permitted = {value: known for value, known in MODES.items() if managed.modes.permits(value)}
    modes = [Choice(value, known.name, known.description) for value, known in permitted.items()]
    return Select("mode", "Mode", mode, [*modes], "What the agent may do without asking", MODE_CATEGORY)


def _thought_option(levels: Sequence[str], level: str) -> Select:
    choices = [Choice(value, value.capitalize()) for value in levels]
    return Select(
        "thought_level",
        "Thinking",
        level,
        [*choices],
        "Level of thought (reasoning effort) of the model",
        "thought_level",
    )


def is_option(option: Option, name: str) -> TypeGuard[Select]:
    """Return whether an option is the one of this name."""
    return isinstance(option, Select) and option.config_id == name
