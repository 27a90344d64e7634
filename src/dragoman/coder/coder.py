"""Our agent in one session: its model, its context, its tools and its gate, made with the first prompt."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Final, Literal, TypeGuard, cast

from msgspec.structs import replace

from dragoman.agent.session import Prompt, Session
from dragoman.coder import commands, loop
from dragoman.coder.changes import Changes
from dragoman.coder.compaction import Room
from dragoman.coder.context import Context, UserSaid, load
from dragoman.coder.instructions import system_prompt
from dragoman.coder.models.contract import Closing, Model, Preparing
from dragoman.coder.modes import MODES
from dragoman.coder.permissions import Gate, Rule
from dragoman.coder.prompting import seen
from dragoman.coder.setup import Setup
from dragoman.coder.toolbox import Toolbox
from dragoman.coder.tools.bash import Bash, command_environment
from dragoman.coder.tools.contract import Desk, Tool
from dragoman.coder.tools.delegating import Delegate
from dragoman.coder.tools.reading import ReadFile
from dragoman.coder.tools.searching import Glob, Grep, ListFiles
from dragoman.coder.tools.talking import AskUser, UpdatePlan
from dragoman.coder.tools.web import WebFetch
from dragoman.coder.tools.writing import EditFile, WriteFile
from dragoman.errors import INVALID_PARAMS, RequestFailed
from dragoman.host.environment import child_environment
from dragoman.host.paths import Roots
from dragoman.vocabulary.content import Content, Text
from dragoman.vocabulary.events import AnyEvent, Notice
from dragoman.vocabulary.options import MODE_CATEGORY, Choice, Option, Select

if TYPE_CHECKING:
    from dragoman.coder.mcp import Servers

_RULE: Final = "rule"
_REVOKED: Final = "revoked"


class Coder:
    """Nothing is read or made before the first prompt: most sessions are only opened."""

    def __init__(self, session: Session, setup: Setup) -> None:
        self.session: Final = session
        self.changes: Final = Changes()
        self.own_commands: dict[str, commands.Own] = {}
        self._setup = setup
        self._models: dict[str, Model] = {}
        self._context: Context | None = None
        self._toolbox: Toolbox | None = None
        self._gate: Gate | None = None
        self._room: Room | None = None
        self._servers: Servers | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._everyones_tools: Final[list[Tool]] = [
            *(ReadFile(), ListFiles(), Glob(), Grep(), WriteFile(), EditFile(), Bash(), WebFetch())
        ]
        # A helper does not talk to the user, and has no helpers.
        self._own_tools: Final[list[Tool]] = [
            *(Delegate(lambda: self.model, self._hands, session.roots), UpdatePlan(), AskUser())
        ]
        # A mode for this turn alone.
        self._turn_mode = ""

    async def open(self) -> None:
        """What a client is told when the session opens: the options and commands there are."""
        # A model that wants a login says so now, and not when the user has typed a prompt.
        current = self._setup.models.current()
        self.session.options = options(self._setup, self._made(current), current)
        if self._setup.home is not None:
            self.own_commands = await asyncio.to_thread(commands.read_own, self._setup.home / "commands")
        self.session.commands = commands.announced(self.own_commands)
        self._prepare(self._made(current))
        configs = [*(self.session.opening.mcp_servers or ()), *self._setup.servers(self.session.cwd)]
        if configs:
            from dragoman.coder.mcp import Servers

            self._servers = Servers(
                configs,
                environment=self._setup.environment,
                cwd=self.session.cwd,
                guardian=self._setup.guardian(),
                notice=self._warn,
                changed=lambda: None,
                roots=self.session.roots,
            )
            self._servers.start()

    async def close(self) -> None:
        """The session is over."""
        if self._preparing is not None:
            self._preparing.cancel()
        if self._servers is not None:
            await self._servers.close()
        for model in self._models.values():
            if isinstance(model, Closing):
                await model.close()

    def _prepare(self, model: Model) -> None:
        """A model that takes a while to load begins now, before the first prompt; the session does not wait for it."""
        if isinstance(model, Preparing):
            self._preparing = asyncio.get_running_loop().create_task(_quietly(model.prepare()))

    async def _warn(self, text: str) -> None:
        await self.session.record(Notice("warning", text))

    @property
    def model(self) -> Model:
        """The model that is chosen now."""
        return self._made(str(self.session.option("model")))

    def _made(self, name: str) -> Model:
        if name not in self._models:
            self._models[name] = self._setup.models.make(name)
        return self._models[name]

    def option_changed(self, config_id: str) -> None:
        """Refuses a model that cannot be had."""
        if config_id == "model":
            self._prepare(self._made(str(self.session.option("model"))))

    def mode(self) -> str:
        """The mode as it is now."""
        return self._turn_mode or str(self.session.option("mode"))

    # -- a turn ------------------------------------------------------------------------------------------------------

    async def turn(self, prompt: Prompt) -> AsyncGenerator[AnyEvent, None]:
        """One prompt, to its end."""
        await self._ready()
        self.changes.begin_turn()
        self._turn_mode = ""
        name, arguments = commands.parse(prompt.text)
        content = prompt.content
        if name == "plan" and arguments:
            self._turn_mode, content = "plan", [Text(arguments)]
        elif name in self.own_commands:
            content = [Text(self.own_commands[name].prompt(arguments))]
        elif name in commands.BUILT_IN and name != "plan":
            events = commands.run(name, arguments, self)
            async with aclosing(events):
                async for event in events:
                    yield event
            return
        async with aclosing(self._work(prompt.message_id, content)) as work:
            async for event in work:
                yield event

    async def _work(self, message_id: str, content: Sequence[Content]) -> AsyncGenerator[AnyEvent, None]:
        context, toolbox, room = await self._ready()
        model = self.model
        toolbox.begin_turn()
        model.begin_turn()
        roots = self.session.roots
        system = await asyncio.to_thread(system_prompt, roots, self.mode())
        said = UserSaid(message_id, await seen(content, Roots(roots), model.sees))
        turn = loop.turn(
            model,
            context,
            toolbox,
            said,
            system=system,
            thought_level=self._thought_level(),
            model_calls=self._setup.model_calls,
            room=room,
            interjected=self._interjected,
        )
        async with aclosing(turn) as events:
            async for event in events:
                yield event

    def _thought_level(self) -> str:
        return next((o.current_value for o in self.session.options if _is(o, "thought_level")), "")

    async def _interjected(self) -> list[UserSaid]:
        roots, sees = Roots(self.session.roots), self.model.sees
        heard = await self.session.interjected()
        return [UserSaid(prompt.message_id, await seen(prompt.content, roots, sees)) for prompt in heard]

    async def _ready(self) -> tuple[Context, Toolbox, Room]:
        if self._context is None or self._toolbox is None or self._room is None:
            self._context = await load(self.session)
            self._gate = Gate(self.mode, await self._recalled_rules(), self._remember)
            self._toolbox = Toolbox(self._all_tools, self._gate, self._desk())
            self._room = Room(self._context, self.session.emit)
        return self._context, self._toolbox, self._room

    def _desk(self) -> Desk:
        environment = command_environment(child_environment(self._setup.environment))
        home = str(self._setup.home or "")
        return Desk(self.session, Roots(self.session.roots), environment, self._setup.guardian(), self.changes, home)

    def _tools(self) -> list[Tool]:
        """What a helper has as well. Names of servers' tools cannot be ours, but ours would win."""
        return [*self._foreign_tools(), *self._everyones_tools]

    def _all_tools(self) -> list[Tool]:
        return [*self._tools(), *self._own_tools]

    def _foreign_tools(self) -> list[Tool]:
        return [] if self._servers is None else self._servers.tools()

    def _hands(self, label: str) -> Toolbox:
        assert self._gate is not None
        return Toolbox(self._tools, self._gate, self._desk(), label)

    # -- for the commands --------------------------------------------------------------------------------------------

    async def sum_up(self) -> None:
        """Replace the context by a summary."""
        _, _, room = await self._ready()
        await room.sum_up(self.model)

    async def forget(self) -> None:
        """An empty context."""
        context, _, room = await self._ready()
        await context.forget()
        room.used = 0

    async def fullness(self) -> tuple[int, int | None, int]:
        """Tokens, window, items."""
        context, _, room = await self._ready()
        return room.tokens(), self.model.window, len(context.items)

    async def rules(self) -> list[Rule]:
        """What was always allowed or forbidden."""
        await self._ready()
        assert self._gate is not None
        return list(self._gate.rules)

    async def revoke(self, index: int) -> Rule:
        """Take a rule back."""
        await self._ready()
        assert self._gate is not None
        rule = self._gate.rules.pop(index)
        await self.session.remember(_REVOKED, list(rule))
        return rule

    def model_names(self) -> list[str]:
        """The models to choose from."""
        return [choice.value for option in self.session.options if _is(option, "model") for choice in option.choices()]

    async def set_option(self, name: str, value: str) -> None:
        """Choose a mode or a model."""
        known = [choice for option in self.session.options if _is(option, name) for choice in option.choices()]
        if name == "model":
            value = self._setup.models.spelled(value)
            self._made(value)
            if not any(choice.value == value for choice in known):
                self._offer_model(value)
        elif not any(choice.value == value for choice in known):
            raise RequestFailed(INVALID_PARAMS, f"There is no such {name}")
        self.session.options = [
            replace(option, current_value=value) if _is(option, name) else option for option in self.session.options
        ]

    def _offer_model(self, name: str) -> None:
        """A model the user has named by hand is one of the choices from then on."""
        self.session.options = [
            replace(option, options=[*option.options, Choice(name, name)]) if _is(option, "model") else option
            for option in self.session.options
        ]

    def servers_text(self) -> str:
        """The MCP servers, in words."""
        if self._servers is None:
            return "This session has no MCP servers."
        lines: list[str] = []
        for server in self._servers.status():
            trouble = f": {server.error}" if server.error else ""
            lines.append(f"- {server.name}: {server.state}, {len(server.tools)} tools{trouble}")
        return "\n".join(lines)

    # -- rules -------------------------------------------------------------------------------------------------------

    async def _recalled_rules(self) -> list[Rule]:
        """The rules of this session, as its log has them."""
        revoked = await self.session.recall(_REVOKED)
        rules: list[Rule] = []
        for rule in await self.session.recall(_RULE):
            if rule in revoked:
                revoked.remove(rule)
            elif isinstance(rule, list) and len(rule) == 3:
                rules.append(Rule(*cast(tuple[Literal["allow", "deny"], str, str], rule)))
        return rules

    async def _remember(self, rule: Rule) -> None:
        await self.session.remember(_RULE, list(rule))


async def _quietly(work: Awaitable[None]) -> None:
    with suppress(Exception):  # the first prompt will say what is wrong
        await work


def options(setup: Setup, model: Model, current: str) -> list[Option]:
    """What the client may choose: what the agent may do, who thinks, and how hard where that can be said."""
    modes = [Choice(value, known.name, known.description) for value, known in MODES.items()]
    models = list(setup.models.choices())
    if all(choice.value != current for choice in models):
        models.insert(0, Choice(current, current))
    return [
        Select("mode", "Mode", setup.mode, list(modes), "What the agent may do without asking", MODE_CATEGORY),
        Select("model", "Model", current, list(models), "Who thinks", "model"),
        *_thinking(setup, model),
    ]


def _thinking(setup: Setup, model: Model) -> list[Option]:
    levels = getattr(model, "thought_levels", ())
    if not levels:
        return []
    level = setup.thought_level if setup.thought_level in levels else levels[0]
    choices = [Choice(value, value.capitalize()) for value in levels]
    return [Select("thought_level", "Thinking", level, list(choices), "How hard the model thinks", "thought_level")]


def _is(option: Option, name: str) -> TypeGuard[Select]:
    return isinstance(option, Select) and option.config_id == name
