"""One row at one subject: the connections that its probe opens, all ended behind it."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dragoman.conformance.connection import CheckLimits
from dragoman.conformance.dialogue import CheckedEnd, CheckedTurn, Dialogue, advertises, hold
from dragoman.conformance.frames import Frame
from dragoman.conformance.identities import CheckIdentity
from dragoman.conformance.subject import Subject
from dragoman.conformance.verdicts import NotTested, RowFailed

DEFAULT_PROMPT: Final = "Say hello in one short sentence, and do nothing else."
DEFAULT_SLOW_PROMPT: Final = "Count slowly from 1 to 400, one number on each line, and use no tool."
DEFAULT_PERMISSION_PROMPT: Final = "Create the file dragoman-check.txt in the working folder with the word hello."
_AGENT_WORK: Final = ("agent_message_chunk", "agent_message", "agent_thought_chunk", "agent_thought", "tool_call")


class CheckSettings(NamedTuple):
    """How a subject is talked to. An empty prompt is the default one."""

    cwd: str
    limits: CheckLimits = CheckLimits()
    prompt: str = DEFAULT_PROMPT
    slow_prompt: str = ""
    permission_prompt: str = ""
    login: str = ""
    identities: tuple[CheckIdentity, ...] = ()


class Trial:
    """What a probe is given."""

    def __init__(self, subject: Subject, version: int, settings: CheckSettings, hello: Mapping[str, Any]) -> None:
        self.subject: Final = subject
        self.version: Final = version
        self.settings: Final = settings
        self.dialogues: Final[list[Dialogue]] = []
        # What the subject answered when it was first greeted: rows are chosen by it.
        self._hello: Final = hello

    def __repr__(self) -> str:
        return f"<Trial version={self.version} {len(self.dialogues)} connections>"

    def advertises(self, capability: str) -> bool:
        """Return whether the subject has advertised a capability."""
        return not capability or advertises(self._hello, self.version, capability)

    async def connect(self) -> Dialogue:
        """Open a connection on which nothing was said."""
        limits = self.settings.limits
        opened = await self.subject.open()
        settings = self.settings
        identity = next((one for one in settings.identities if one.version == self.version), None)
        dialogue = Dialogue(opened, limits, self.version, settings.cwd, settings.login, identity)
        self.dialogues.append(dialogue)
        return dialogue

    async def greeted(self, capabilities: Mapping[str, Any] | None = None) -> Dialogue:
        """Open a connection and greet, offering just these capabilities if any are given; log in if the user named a
        login."""
        dialogue = await self.connect()
        await dialogue.initialize(dialogue.greeting(capabilities=capabilities))
        await dialogue.log_in()
        return dialogue

    async def session(self, capabilities: Mapping[str, Any] | None = None) -> tuple[Dialogue, str]:
        """Open a connection with one session."""
        dialogue = await self.greeted(capabilities)
        return dialogue, (await dialogue.open_session())["sessionId"]

    async def played(self) -> tuple[Dialogue, str, CheckedEnd]:
        """Open a connection with a session in which one ordinary turn was played."""
        dialogue, session = await self.session()
        end = await dialogue.finish(dialogue.prompt(session, self.settings.prompt))
        await dialogue.connection.quiet()
        return dialogue, session, end

    async def slow_turn(self, dialogue: Dialogue, session: str) -> CheckedTurn:
        """Begin a turn that takes long, and wait until the agent works at it. Raise `NotTested` if it was too short.

        What the agent asks for in it stays open, so nothing is done; `Dialogue.cancel` answers it.
        """
        dialogue.choose = hold
        turn = dialogue.prompt(session, self.settings.slow_prompt or DEFAULT_SLOW_PROMPT)
        kinds = (*_AGENT_WORK, "tool_call_update")
        if await dialogue.until_update(turn, "the first update of the turn", *kinds) is None:
            raise NotTested(
                "the turn ended before anything could be done in it", "--slow-prompt TEXT: one that takes seconds"
            )
        return turn

    def expect_cancelled(self, end: CheckedEnd) -> None:
        """Judge the end of a turn that was cancelled."""
        if end.error is not None:
            raise RowFailed(f"the cancelled prompt is answered with error {end.error.get('code')}")
        if end.reason == "end_turn" and not self.settings.slow_prompt:
            raise NotTested("the turn was over before it was cancelled", "--slow-prompt TEXT: one that takes seconds")
        if end.reason != "cancelled":
            raise RowFailed(f"the cancelled turn ends with {end.reason!r}")

    async def asking_turn(self, dialogue: Dialogue, session: str) -> CheckedTurn:
        """Begin a turn for which the agent asks for permission."""
        return dialogue.prompt(session, self.settings.permission_prompt or DEFAULT_PERMISSION_PROMPT)

    def frames(self) -> list[Frame]:
        """Return the frames of all connections, one connection after the other."""
        return [frame for dialogue in self.dialogues for frame in dialogue.connection.recording.frames]

    async def close(self) -> None:
        """End what the probe has opened."""
        for dialogue in self.dialogues:
            await dialogue.close()
