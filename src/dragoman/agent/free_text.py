"""Ask the user a question in free text, with an extension method of the client's: older clients have no forms.

Which methods there are, and how each is written, the dialects know (`dialects/vendors/extensions.py`); nothing here or
above names a vendor.
"""

from collections.abc import Sequence
from typing import Final

from dragoman.agent.session import Session
from dragoman.dialects.vendors.extensions import QUESTION_EXTENSIONS, UNAVAILABLE, advertised_question
from dragoman.vocabulary.hello import ClientCapabilities
from dragoman.vocabulary.services import UserQuestion

# The answer of a client whose user is away. Models know it by this very text.
USER_UNAVAILABLE: Final = UNAVAILABLE


def can_ask_free_text(client: ClientCapabilities) -> bool:
    """Return whether a client has named a method for questions in free text in its capabilities."""
    return advertised_question(client.meta) is not None


async def ask_free_text(session: Session, question: str, options: Sequence[str] = ()) -> str | None:
    """Ask the user and wait for the text. None: no answer; `USER_UNAVAILABLE` where the client says so.

    `options` are answers to choose from. Only where `can_ask_free_text`. `PeerError` if the client refuses it.
    """
    method = advertised_question(session.client.meta)
    assert method is not None, "look at can_ask_free_text first"
    extension = QUESTION_EXTENSIONS[method]
    params = extension.encode(UserQuestion(session.id, question, tuple(options)))
    return extension.decode_answer(await session.request(method, params))
