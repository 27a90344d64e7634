"""A session of the coding agent in a repository, with a scripted model and a real store, that tests rewind."""

import os
import stat
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import UNSET

from dragoman.client.connect import Client
from dragoman.client.conversation import Conversation
from dragoman.coder.context import ContextUserMessage
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import text_of
from dragoman.vocabulary.events import AgentMessage, AnyEvent, UserMessage
from dragoman.vocabulary.requests import RewindSession, SessionRewound
from tests.support.git_repository import repository
from tests.support.scripted_turns import RecordingModel
from tests.support.whole_agent import User, whole


class Desk(NamedTuple):
    """A session in a repository, with the folder that it works in."""

    folder: Path
    client: Client
    conversation: Conversation
    model: RecordingModel
    heard: list[AnyEvent]

    async def rewind(self, message_id: str = "", scope: str = "both", **more: Any) -> SessionRewound:
        return await self.client.ask(RewindSession(self.conversation.id, message_id or UNSET, scope, **more))

    async def say(self, *words: str) -> None:
        for word in words:
            await self.conversation.prompt(word).read()

    async def loaded(self) -> list[tuple[type[AnyEvent], str, str]]:
        """The messages that a client sees which loads the session: kind, id and words of each."""
        self.heard.clear()
        await self.client.load_session(self.conversation.id, str(self.folder))
        messages = [event for event in self.heard if isinstance(event, UserMessage | AgentMessage)]
        return [(type(one), one.message_id, text_of(one.content or []).strip()) for one in messages]

    async def shown(self) -> list[str]:
        """The words of each message."""
        return [words for _, _, words in await self.loaded()]

    async def ids(self) -> list[str]:
        """The ids of the prompts."""
        return [id for kind, id, _ in await self.loaded() if kind is UserMessage]

    def known(self) -> list[str]:
        """What the model was told by the user in its last call."""
        items = [item for item in self.model.prompts if isinstance(item, ContextUserMessage) and not item.source]
        return [text_of(item.content) for item in items]

    def names(self, done: SessionRewound) -> set[tuple[str, str, str]]:
        return {(file.path.removeprefix(f"{self.folder}/"), file.action, file.trouble) for file in done.files}


@asynccontextmanager
async def desk(
    tmp_path: Path, *turns: Sequence[Any], folder: Path | None = None, script: Mapping[str, Any] = {}, **more: Any
) -> AsyncIterator[Desk]:
    folder = folder or repository(tmp_path / "project")
    store = SqliteStore(tmp_path / "home" / "sessions")
    model = RecordingModel(*turns, **script)
    heard: list[AnyEvent] = []
    options: dict[str, Any] = {"mode": "full-access", "user": User("allow_once"), **more}
    try:
        async with whole(
            folder,
            lambda _: model,
            store=store,
            home=tmp_path / "home",
            on_event=lambda _, event: heard.append(event),
            **options,
        ) as (client, conversation):
            yield Desk(folder, client, conversation, model, heard)
    finally:
        await store.close()


def tree(folder: Path) -> dict[str, str]:
    """Every file but git's own: its mode and content, or where a link leads."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if ".git" in name.split("/") or (path.is_dir() and not path.is_symlink()):
            continue
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        else:
            found[name] = f"{'x' if path.stat().st_mode & stat.S_IXUSR else '-'} {path.read_text()}"
    return found
