"""A server that sends a client elsewhere is not obeyed: neither the token nor anything else goes there."""

import asyncio

import pytest

from dragoman import connect
from dragoman.errors import DragomanError

TOKEN = "t" * 43


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("scheme", ["http", "ws"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(scheme: str, host: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.transports.remote.FIRST_SECONDS", 0.2)
    heard: dict[str, list[bytes]] = {"first": [], "elsewhere": []}
    answers = {"elsewhere": b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"}

    async def server(name: str) -> asyncio.Server:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard[name].append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(answers[name])
            await writer.drain()
            writer.close()

        return await asyncio.start_server(serve, "127.0.0.1", 0)

    elsewhere, first = await server("elsewhere"), await server("first")
    to, at = (one.sockets[0].getsockname()[1] for one in (elsewhere, first))
    location = f"Location: {scheme}://{host}:{to}/acp\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    answers["first"] = f"HTTP/1.1 {status} Moved\r\n{location}".encode()
    with pytest.raises(DragomanError):
        async with connect(f"{scheme}://127.0.0.1:{at}", token=TOKEN):
            pass
    for one in (first, elsewhere):
        one.close()
        await one.wait_closed()
    assert TOKEN.encode() in b"".join(heard["first"])
    assert heard["elsewhere"] == []
