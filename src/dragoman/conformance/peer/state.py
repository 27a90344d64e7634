"""What the peer remembers: sessions that outlive its process, as a disk holds them."""

from typing import Any, Final

Message = dict[str, Any]


class PeerSession:
    """One session: its folder, its history as it was sent, its settings, and what runs in it."""

    def __init__(self, id: str, cwd: str) -> None:
        self.id: Final = id
        self.cwd: Final = cwd
        self.history: list[Message] = []
        self.prompts = 0
        self.mode = "ask"
        self.is_dead = False  # a switch: it takes no more prompts


class PeerDisk:
    """The sessions of all processes of one subject."""

    def __init__(self) -> None:
        self.sessions: Final[dict[str, PeerSession]] = {}
        self._opened = 0

    def __repr__(self) -> str:
        return f"<PeerDisk {len(self.sessions)} sessions>"

    def open(self, cwd: str, *, id: str = "") -> PeerSession:
        """Add a session."""
        self._opened += 1
        session = PeerSession(id or f"session-{self._opened}", cwd)
        self.sessions[session.id] = session
        return session
