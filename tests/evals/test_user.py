"""The user of an attempt answers by the task's rules, and what happened is kept short."""

from dragoman import PermissionOption, RequestPermission, events
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.services import Elicit, Form, SessionScope, ToolCallSubject, UserQuestion
from evals.task import Reply, User
from evals.transcript import Transcript
from evals.user import DEFAULT_REPLY, SimulatedUser

OPTIONS = [PermissionOption(kind, kind, kind) for kind in ("allow_always", "allow_once", "reject_once")]


def request(command: str) -> RequestPermission:
    call = events.ToolCallUpdate("1", raw_input={"command": command})
    return RequestPermission("s", "Run a command", OPTIONS, subject=ToolCallSubject(call))


async def answers(user: User, *commands: str) -> list[str]:
    simulated = SimulatedUser(user, Transcript())
    chosen = [await simulated.permission(request(command)) for command in commands]
    return [option.kind if option else "" for option in chosen]


async def test_a_yes_is_for_this_once() -> None:
    assert await answers(User(), "make") == ["allow_once"]


async def test_deny_beats_allow_and_the_rest_is_answered_otherwise() -> None:
    user = User(deny=("rm",), allow=("make",), otherwise="deny")
    assert await answers(user, "make", "make rm", "ls") == ["allow_once", "reject_once", "reject_once"]


async def test_questions_are_answered_by_their_words() -> None:
    user = SimulatedUser(User(replies=(Reply("(?i)colour", "Blue, please"),)), Transcript())
    assert await user.ask_user(UserQuestion("s", "Which colour?")) == "Blue, please"
    assert await user.ask_user(UserQuestion("s", "Which size?")) == DEFAULT_REPLY
    fields = {
        "answer": {"type": "string", "enum": ["red", "blue"]},
        "sure": {"type": "boolean"},
        "n": {"type": "integer"},
    }
    form = Elicit("Colour?", Form({"properties": fields}), SessionScope("s"))
    assert await user.elicitation(form) == {"answer": "blue", "sure": False, "n": 0}
    assert user.questions == 3


def chunk(text: str) -> events.AgentMessageChunk:
    return events.AgentMessageChunk(message_id="m", content=Text(text))


def test_the_answer_is_what_stands_behind_the_last_tool_call() -> None:
    transcript = Transcript()
    for event in (chunk("I will "), chunk("look."), events.ToolCallUpdate("1", title="Look"), chunk("It is 4.")):
        transcript.apply(event)
    assert transcript.answer() == "It is 4."
    assert [entry.text for entry in transcript.entries] == ["I will look.", "Look", "It is 4."]


def test_commands_are_remembered_as_they_were_given() -> None:
    transcript = Transcript()
    for given in ({"command": "make"}, {"command": ["ls", "-a"]}, {"path": "x"}, {"command": "make"}):
        transcript.apply(events.ToolCallUpdate("1", raw_input=given))
    assert transcript.commands == ["make", "ls -a"]
    assert transcript.tool_calls == 1


def test_a_transcript_is_bounded() -> None:
    transcript = Transcript()
    for number in range(3_000):
        transcript.apply(events.ToolCallUpdate(str(number), title="x" * 20_000, raw_input={"a": "y" * 20_000}))
        transcript.note("notice", "z" * 20_000)
    assert len(transcript.entries) == 2_000
    assert sum(len(entry.text) + len(entry.detail) for entry in transcript.entries) < 1_100_000
