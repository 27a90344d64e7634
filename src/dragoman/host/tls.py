"""Whom a connection to an address believes. Reading the list of authorities takes tens of milliseconds."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dragoman.errors import UsageError

if TYPE_CHECKING:
    import ssl


def verify_for(url: str, ca_file: str = "") -> "ssl.SSLContext | bool":
    """Return the `verify` argument of an HTTP client: True (the list of authorities) for https.

    With `ca_file` only the authorities in it count. Other schemes get a context without authorities: the list is not
    read, and no certificate would be trusted. Raise `UsageError` for a file that cannot be used.
    """
    import ssl

    if ca_file:
        return trust_only(ca_file)
    return True if urlsplit(url).scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def trust_only(ca_file: str) -> "ssl.SSLContext":
    """Return a client's context that believes the authorities in a PEM file and no others.

    Raise `UsageError` for a file that cannot be read or has no certificate. A certificate that is its own authority,
    as `openssl req -x509` makes it, is believed if it stands there.
    """
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(ca_file)
    except ssl.SSLError:
        raise UsageError(f"{ca_file} has no certificate in PEM") from None
    except OSError as error:
        raise UsageError(f"{ca_file}: {(error.strerror or 'cannot be read').lower()}") from None
    return context
