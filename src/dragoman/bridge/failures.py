"""What a bridge says in its own words, when one side cannot be told what the other said."""

from typing import Final

GONE: Final = "The other side of the bridge is gone"
UNREADABLE: Final = "The other side of the bridge gave an answer that cannot be read"
TOO_LARGE: Final = "In the version of the other side this message is too large"
