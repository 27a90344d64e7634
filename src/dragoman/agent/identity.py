"""Names for sessions, messages and calls: unguessable, and unique without asking anybody."""

import os


def new_id(prefix: str) -> str:
    """A fresh id: 96 bits of chance under a readable prefix."""
    return f"{prefix}_{os.urandom(12).hex()}"


def new_session_id() -> str:
    """A fresh session id: 128 bits, because whoever knows it may name the session."""
    return f"sess_{os.urandom(16).hex()}"
