"""The live trace of a session at a server of ours: whole lines, while they come (`gateway/live_traces`)."""

from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import quote, urlsplit

from dragoman import limits
from dragoman.errors import LinkClosed, UsageError, how_to_install
from dragoman.host.tls import verify_for

# A server says something at least every 15 seconds.
_SILENT_SECONDS: Final = 60.0
_CONNECT_SECONDS: Final = 10.0
_LINE_BYTES: Final = 2 * limits.FRAME_BYTES
_REASON: Final = 500


async def live_lines(url: str, session_id: str, token: str, ca_file: str = "") -> AsyncIterator[list[bytes]]:
    """Yield the lines of the trace of a session, as many as came together, until the session ends.

    `url` is any address of the server. Raise `UsageError` for an address that is none, `LinkClosed` if the server
    cannot be reached, refuses, or sends a line without an end.
    """
    try:
        import httpx2
    except ImportError:
        raise UsageError(f"following a session needs httpx2: {how_to_install('serve')}") from None
    address = _address(url, session_id)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = httpx2.Timeout(_CONNECT_SECONDS, read=_SILENT_SECONDS)
    part = b""
    try:
        async with (
            httpx2.AsyncClient(verify=verify_for(address, ca_file), timeout=timeout) as client,
            client.stream("GET", address, headers=headers) as response,
        ):
            if response.status_code != 200:
                reason = (await response.aread())[:_REASON].decode(errors="replace")
                raise LinkClosed(f"{url}: {response.status_code} {reason}")
            async for data in response.aiter_bytes():
                *lines, part = (part + data).split(b"\n")
                if len(part) > _LINE_BYTES:
                    raise LinkClosed(f"{url}: a line is longer than a trace has them")
                yield [line for line in lines if line.strip()]
    except (httpx2.HTTPError, OSError) as error:
        raise LinkClosed(f"{url}: {str(error) or type(error).__name__}") from None


def _address(url: str, session_id: str) -> str:
    parts = urlsplit(url)
    schemes = {"http": "http", "https": "https", "ws": "http", "wss": "https"}
    if parts.scheme not in schemes or not parts.hostname or parts.username is not None:
        raise UsageError(f"{url!r} is no address of a server; it begins with https://, http://, wss:// or ws://")
    return f"{schemes[parts.scheme]}://{parts.netloc}/trace/{quote(session_id, safe='')}"
