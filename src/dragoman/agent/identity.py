"""Random ids for sessions, messages and calls: unguessable, and unique without a central counter."""

import os


def new_id(prefix: str) -> str:
    """A fresh id: 96 bits of chance under a readable prefix."""
    return f"{prefix}_{os.urandom(12).hex()}"


def new_session_id() -> str:
    """Return a new session id with 128 random bits: the id is all that a client needs to address the session."""
    return f"sess_{os.urandom(16).hex()}"
