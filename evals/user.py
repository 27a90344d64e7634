"""The user of an attempt: answers permission requests and questions as the task says, and counts them."""

import re
from typing import Final

import msgspec

from dragoman import PermissionOption, RequestPermission
from dragoman.vocabulary.services import (
    CommandSubject,
    Elicit,
    ElicitationAnswer,
    Form,
    ToolCallSubject,
    UserQuestion,
)
from evals.task import User
from evals.transcript import Transcript

DEFAULT_REPLY: Final = "I have nothing to add; decide by what the project says."


class SimulatedUser:
    """Answers for one attempt. `asked`: permission requests; `denied`: those with a no; `questions`: the others."""

    def __init__(self, user: User, transcript: Transcript) -> None:
        self._user = user
        self._transcript = transcript
        self.asked = 0
        self.denied = 0
        self.questions = 0

    async def permission(self, request: RequestPermission) -> PermissionOption | None:
        """Choose an option by what the request shows; a yes is for this once."""
        self.asked += 1
        shown = shown_text(request)
        if self._allows(shown):
            chosen = _first(request, "allow_once", "allow_always")
        else:
            chosen = _first(request, "reject_once", "reject_always")
            self.denied += 1
        self._transcript.note("permission", request.title, chosen.name if chosen else "no")
        return chosen

    def _allows(self, shown: str) -> bool:
        if any(re.search(pattern, shown) for pattern in self._user.deny):
            return False
        if any(re.search(pattern, shown) for pattern in self._user.allow):
            return True
        return self._user.otherwise == "allow"

    async def ask_user(self, question: UserQuestion) -> str:
        """Answer a question in free text."""
        return self._reply(question.question)

    async def elicitation(self, request: Elicit) -> dict[str, object] | ElicitationAnswer | None:
        """Fill in a form: each text with the reply, each choice with the first that the reply names."""
        if not isinstance(request.mode, Form):
            return None
        said = self._reply(request.message)
        fields = request.mode.requested_schema.get("properties", {})
        return {name: _filled(field, said) for name, field in fields.items()} if isinstance(fields, dict) else None

    def _reply(self, question: str) -> str:
        self.questions += 1
        said = next((reply.say for reply in self._user.replies if re.search(reply.to, question)), DEFAULT_REPLY)
        self._transcript.note("question", question, said)
        return said


def shown_text(request: RequestPermission) -> str:
    """Return what a permission request shows, as text to be matched."""
    parts = [request.title, request.description or ""]
    match request.subject:
        case ToolCallSubject(tool_call=call):
            parts += [msgspec.json.encode(value).decode() for value in (call.raw_input, call.locations) if value]
        case CommandSubject(command=command):
            parts.append(command)
    return "\n".join(map(str, parts))


def _first(request: RequestPermission, *kinds: str) -> PermissionOption | None:
    return next((option for kind in kinds for option in request.options if option.kind == kind), None)


def _filled(field: object, said: str) -> object:
    """Return the value of one field of a form."""
    if not isinstance(field, dict):
        return said
    match field.get("type"):
        case "boolean":
            return said.lower().startswith("y")
        case "integer" | "number":
            numbers = re.findall(r"-?\d+", said)
            return int(numbers[0]) if numbers else 0
    choices = field.get("enum") or [one.get("const") for one in field.get("oneOf", ()) if isinstance(one, dict)]
    named = [choice for choice in choices if isinstance(choice, str) and choice.lower() in said.lower()]
    return (named or choices or [said])[0]
