"""Questions that an agent asks about a request, asked under another id on the other hop.

Ids of requests belong to one hop: a client that has sent request 7 through a bridge or a gateway does not know it by
the number under which the agent got it. An elicitation that names such a number has to name the client's own id, or
none: an editor would answer a stranger's question with an error, or show it beside the wrong request.
"""

from msgspec.structs import replace

from dragoman.dialects.contract import Id
from dragoman.link import Link
from dragoman.vocabulary.asking import Request
from dragoman.vocabulary.requests import PromptRequest
from dragoman.vocabulary.services import Elicit, RequestScope, SessionScope, UnknownMode


def scope_at_client(request: Request, id: Id, link: Link, *, is_answered: bool) -> RequestScope | SessionScope:
    """Return the scope of a question about `request`, as the client on `link` knows it: `id` is its own.

    A client whose prompts are answered when they are accepted has forgotten the id of one that `is_answered`, though
    its turn still runs: there the scope is the session.
    """
    if isinstance(request, PromptRequest) and is_answered and not link.replies_to_prompt_at_turn_end:
        return SessionScope(request.session_id)
    return RequestScope(id)


def with_scope(question: Elicit, scope: RequestScope | SessionScope) -> Elicit:
    """Return the question with another scope. A mode that this release does not know has the scope's id in its own
    fields too, because there all fields are kept as they came."""
    if not isinstance(question.mode, UnknownMode):
        return replace(question, scope=scope)
    fields = {name: value for name, value in question.mode.fields.items() if name != "requestId"}
    if isinstance(scope, SessionScope):
        fields["sessionId"] = scope.session_id
    else:
        fields["requestId"] = scope.request_id
    return replace(question, scope=scope, mode=UnknownMode(question.mode.kind, fields))
