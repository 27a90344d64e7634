"""What the user said, as the author of an agent sees it."""

from collections.abc import Sequence
from typing import Final

from dragoman.vocabulary.content import Content, Text, text_of


class Prompt:
    """What the user said."""

    def __init__(self, content: Sequence[Content], message_id: str) -> None:
        self.content: Final = list(content)
        self.message_id: Final = message_id

    @property
    def text(self) -> str:
        """The prompt as plain text."""
        return text_of(self.content)

    @property
    def words(self) -> str:
        """What the user has typed, without what goes along; what goes along, where that is all."""
        return " ".join(block.text for block in self.content if isinstance(block, Text)) or self.text
