"""The secret that all nodes of a cluster share, and the token that each of them derives from it to call the others.

Who has the secret is a node, and is believed whatever it says about its clients. The token names the node, so that logs
do; it is no secret of its own and never ends: over networks that others can read it needs TLS.
"""

import hashlib
import hmac
import os
import re
from typing import Final

from dragoman.errors import UsageError
from dragoman.transports.token import read_token

# 128 bits, however they are written down.
_CHARACTERS: Final = 32
_PREFIX: Final = "dragoman-node"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def check_node_name(name: str) -> str:
    """Return the name of a node; raise `UsageError` if it cannot be one."""
    if not _NAME.fullmatch(name) or name.startswith("process-"):
        raise UsageError(f"{name!r} cannot name a node: letters, digits, points and dashes, at most 63, not process-…")
    return name


class NodeSecret:
    """The secret in a file. Raise `UsageError` if others can read it, or it is too short to be one."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        secret = read_token(path)
        if len(secret) < _CHARACTERS:
            raise UsageError(f"{os.fspath(path)}: a secret of nodes has {_CHARACTERS} characters or more")
        self._key: Final = secret.encode()

    def __repr__(self) -> str:  # never the secret
        return "<NodeSecret>"

    def token_of(self, node: str) -> str:
        """Return the token by which a node calls another one."""
        proof = hmac.new(self._key, f"{_PREFIX}:{node}".encode(), hashlib.sha256).hexdigest()
        return f"{_PREFIX}:{node}:{proof}"

    def node_of(self, token: bytes) -> str:
        """Return the name of the node that shows a token; empty: it is no token of a node."""
        prefix, _, rest = token.partition(b":")
        if prefix != _PREFIX.encode():
            return ""
        name = rest.rpartition(b":")[0].decode("ascii", "replace")
        if not _NAME.fullmatch(name):
            return ""
        return name if hmac.compare_digest(token, self.token_of(name).encode()) else ""
