"""Whom a connection to an address believes. Reading the list of authorities takes tens of milliseconds."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import ssl


def trust_for(url: str) -> "ssl.SSLContext | bool":
    """What an HTTP client takes as `verify`: where there is no TLS nobody reads the list, and nobody is believed."""
    import ssl

    return True if urlsplit(url).scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
