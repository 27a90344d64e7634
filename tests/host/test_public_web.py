"""The transport that connects to checked addresses, for any request; that of pages is tested in `test_fetch.py`."""

import asyncio
import subprocess
import sys

import httpx2
import pytest

from dragoman.host.address import UrlRefused
from dragoman.host.public_web import PublicTransport, UnknownHost
from tests.support.web import PUBLIC, Web

pytestmark = pytest.mark.anyio


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    body = await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]))
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(head + body), head + body))
    await writer.drain()
    writer.close()


@pytest.mark.requirement("I11")
async def test_a_posted_body_goes_to_the_address_that_was_checked() -> None:
    """To the next one where the first cannot be reached."""
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server:
        world = Web(server.sockets[0].getsockname()[1], {})
        world.names["two.example"] = [["1.1.1.1", PUBLIC], ["127.0.0.1"]]
        world.dead.add("1.1.1.1")
        transport = PublicTransport(world.open_transport("", None), world.resolve)
        async with httpx2.AsyncClient(transport=transport, trust_env=False) as client:
            answer = await client.post("http://two.example/x", content=b"hello")
            assert answer.text.startswith("POST /x HTTP/1.1\r\nHost: two.example\r\n")
            assert answer.text.endswith("hello")
            with pytest.raises(UrlRefused):
                await client.post("http://two.example/x", content=b"hello")
    assert world.dialled == [("1.1.1.1", 80, None), (PUBLIC, 80, None)]


async def test_a_name_without_an_address_is_an_unknown_host() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        raise OSError

    async with httpx2.AsyncClient(transport=PublicTransport(httpx2.AsyncHTTPTransport(), resolve)) as client:
        with pytest.raises(UnknownHost):
            await client.get("http://nowhere.example/")


@pytest.mark.requirement("D11")
@pytest.mark.parametrize("module", ["None", "types.ModuleType('brotli')", "types.SimpleNamespace(Decompressor=object)"])
def test_brotli_is_not_asked_for_where_it_is_missing_or_unpacks_without_a_bound(module: str) -> None:
    source = f"import sys, types; sys.modules['brotli'] = {module}\n"
    source += "from dragoman.host.bounded_body import ACCEPTED_ENCODINGS; print(ACCEPTED_ENCODINGS)"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout == "gzip, deflate\n"
