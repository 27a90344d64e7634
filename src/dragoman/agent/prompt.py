"""What the user said, as the author of an agent sees it."""

from collections.abc import Sequence
from typing import Final

from dragoman.vocabulary.content import Content, Text, text_of
from dragoman.vocabulary.identity import LOCAL, Identity


class Prompt:
    """What the user said. `identity` is who that was, as a trusted gateway tells; else the user at this machine."""

    def __init__(self, content: Sequence[Content], message_id: str, identity: Identity = LOCAL) -> None:
        self.content: Final = list(content)
        self.message_id: Final = message_id
        self.identity: Final = identity

    @property
    def text(self) -> str:
        """The prompt as plain text."""
        return text_of(self.content)

    @property
    def command(self) -> tuple[str, str]:
        """The name and the arguments of a slash command; both are empty if the prompt is none.

        Only what the user typed counts: the first block, if it is text. What goes along, a file or a link, is data
        whatever it says, and a blank text before it makes no command of it.
        """
        first = self.content[0] if self.content else None
        words = first.text.split(maxsplit=1) if isinstance(first, Text) else []
        if not words or not words[0].startswith("/"):
            return "", ""
        return words[0][1:], words[1].strip() if len(words) > 1 else ""

    @property
    def words(self) -> str:
        """What the user has typed, without what goes along; what goes along, where that is all."""
        return " ".join(block.text for block in self.content if isinstance(block, Text)) or self.text
