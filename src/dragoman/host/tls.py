"""Whom a connection to an address believes. Reading the list of authorities takes tens of milliseconds."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import ssl


def verify_for(url: str) -> "ssl.SSLContext | bool":
    """Return the `verify` argument of an HTTP client: True (the list of authorities) for https.

    Other schemes get a context without authorities: the list is not read, and no certificate would be trusted.
    """
    import ssl

    return True if urlsplit(url).scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
