"""What a person typed, as text that can be sent: Python keeps bytes it cannot read as halves of pairs (PEP 383)."""


def decode_input(text: str) -> str:
    """Return the text; such bytes are read as UTF-8, whatever the locale says, and bad ones become U+FFFD."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
