"""What may come in without a token, where only this machine reaches the server: a program of the server's own user.

Pure, like the guard, which has checked `Host` and `Origin` before; that the program is one of this user is asked of the
kernel by `peer_user`. What a browser sends for another page, what was sent to another name, and what came through a
proxy needs a token all the same. What comes in so is one principal of its own: it owns what it makes, and sees
nothing that another principal has made.

A proxy is known by what it adds. One that adds nothing, says our own name and runs as the same user looks like a
program of this user: these paths must not be served through it.
"""

import re
from collections.abc import Iterable
from typing import Final

from dragoman.gateway.headers import Headers, value_of
from dragoman.gateway.host_check import is_loopback
from dragoman.gateway.token_types import TokenIdentity

# No token can have this principal: a command line has no NUL.
ANONYMOUS: Final = TokenIdentity("", "\0nobody", ("read", "prompt"))
# How the headers begin that are said by proxies about whom they speak for.
_FORWARDED: Final = (b"forwarded", b"via", b"x-forwarded-", b"x-real-ip", b"true-client-ip", b"cf-", b"x-client-ip")
# A name and its port; an IPv6 address has one only behind brackets.
_HOST: Final = re.compile(r"^(\[[^\]]*\]|[^:]*):[0-9]*$", re.ASCII)


def needs_no_token(headers: Headers, address: str) -> bool:
    """Whether this may have come from a program of this machine itself, and shows no token. A token that is shown must
    be right. Which user's program it is, the headers cannot say."""
    names = {name for name, _ in headers}
    if b"authorization" in names or not is_loopback(address):
        return False
    if any(name.lower().startswith(_FORWARDED) for name in names):
        return False
    # A page makes a browser fetch what it likes, and not all of that has an Origin.
    if value_of(headers, b"sec-fetch-site") not in (None, "none", "same-origin"):
        return False
    return only_this_machine([value_of(headers, b"host") or ""])


def only_this_machine(hosts: Iterable[str]) -> bool:
    """Return whether all `hosts`, each with or without a port, are loopback names or addresses."""
    return all(is_loopback(_HOST.sub(r"\1", host.lower()).strip("[]")) for host in hosts)
