"""The webhooks of one server alone, in a file; in a cluster they are in its database."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from dragoman import limits
from dragoman.errors import UsageError
from dragoman.gateway.webhook import WEBHOOKS, Webhook
from dragoman.host.private_file import check_private, write_private
from dragoman.host.regular_file import read_whole

_log = logging.getLogger(__name__)

# A webhook takes some 250 bytes with an address of usual length: room for 3,000 principals that have `WEBHOOKS` each.
_FILE_BYTES: Final = 4 * limits.MIB


class FileWebhooks:
    """The webhooks of this server alone, as `SharedWebhooks`: in a file that only its owner can read, since it has the
    secrets. Without a file they are in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._found: dict[str, list[Webhook]] | None = None if path is not None else {}
        self._changing = asyncio.Lock()

    async def of(self, principal: str) -> Sequence[Webhook]:
        """Return the webhooks of a principal. Waits for the disk, once; raises `OSError`, `UsageError`."""
        return (await self._read()).get(principal, [])

    async def add(self, principal: str, webhook: Webhook) -> bool:
        """Add a webhook; return False if the principal has `WEBHOOKS` already. Waits for the disk. Raise
        `UsageError` where the file would be too large."""
        async with self._changing:
            found = await self._read()
            known = found.get(principal, [])
            if len(known) >= WEBHOOKS:
                return False
            await self._write({**found, principal: [*known, webhook]})
        return True

    async def remove(self, principal: str, webhook_id: str) -> bool:
        """Remove a webhook; return whether there was one. Waits for the disk."""
        async with self._changing:
            found = await self._read()
            known = found.get(principal, [])
            left = [webhook for webhook in known if webhook.id != webhook_id]
            await self._write({**found, principal: left})
        return len(left) < len(known)

    async def _read(self) -> dict[str, list[Webhook]]:
        if self._found is None:
            assert self._path is not None
            found = await asyncio.to_thread(_read_file, self._path)
            # `of` reads without the lock: meanwhile `add` may have read the file too, and written it. What it has left
            # here is newer, and the next change is written from it.
            if self._found is None:
                self._found = found
        return self._found

    async def _write(self, found: dict[str, list[Webhook]]) -> None:
        found = {principal: webhooks for principal, webhooks in found.items() if webhooks}
        if self._path is not None:
            content = msgspec.json.encode(found)
            # A larger file could not be read after a restart, and no principal would have its webhooks.
            if len(content) > _FILE_BYTES:
                raise UsageError("There are too many webhooks on this server. Remove one first.")
            await asyncio.to_thread(write_private, self._path, content)
        self._found = found


def _read_file(path: Path) -> dict[str, list[Webhook]]:
    try:
        content = read_whole(path, _FILE_BYTES, follow=False, check=check_private)
        return msgspec.json.decode(content, type=dict[str, list[Webhook]])
    except FileNotFoundError:
        return {}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # The console shows the error to users; where the file is, is for the operator alone.
        _log.warning("%s is no file of webhooks", path)
        raise UsageError("What is there is no file of webhooks: the operator has to move it away.") from error
