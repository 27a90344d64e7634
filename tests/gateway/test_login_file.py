"""Logins of browsers outlive the server: what is in the file, what it is worth, and what happens where it is spoilt."""

import asyncio
import json
import os
import stat
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dragoman.gateway import login_file as login_file_module
from dragoman.gateway import login_store as cookies_module
from dragoman.gateway.host_check import Refusal
from dragoman.gateway.login_file import FILE_BYTES, LOGINS, LoginFile, StoredLogin
from dragoman.gateway.login_store import LoginStore
from dragoman.gateway.shared_state import LoginHalves
from dragoman.gateway.token_types import SCOPES, Token, TokenIdentity, digest_of
from tests.support.guards import ImmediateGuard
from tests.support.waiting import until

pytestmark = pytest.mark.anyio
TOKENS = [Token(name, name, SCOPES, digest_of(name.encode())) for name in ("laptop", "phone")]
NOW = 1_800_000_000.0


class Server:
    """A guard with a file, as one start of a server has it. `said` is its log."""

    def __init__(self, path: Path, now: float = NOW) -> None:
        self.now = now
        self.tokens = list(TOKENS)
        self.said: list[str] = []
        self.cookies = LoginStore(lambda: self.now, LoginFile(path, self.said.append))
        self.guard = ImmediateGuard(lambda: self.tokens, ["localhost"], 8790, lambda: self.now, self.cookies)

    async def login(self, name: str = "laptop") -> LoginHalves:
        entered = self.guard.authenticate([(b"authorization", b"Bearer " + name.encode())], "here")
        assert isinstance(entered, TokenIdentity)
        halves = self.guard.log_in(entered)
        assert halves is not None
        await self.cookies.save()
        return halves

    def authenticate(self, login: LoginHalves) -> TokenIdentity | Refusal:
        headers = [
            ("cookie", f"dragoman-8790={login.cookie}"),
            ("origin", "x"),
            ("x-dragoman-page-key", login.page_key),
        ]
        return self.guard.authenticate([(name.encode(), value.encode()) for name, value in headers], "here")

    def knows(self, login: LoginHalves) -> bool:
        return isinstance(self.authenticate(login), TokenIdentity)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gateway" / "logins.json"


async def test_a_login_counts_after_a_restart_with_both_halves_and_only_so(path: Path) -> None:
    login = await Server(path).login()
    again = Server(path)
    assert not again.knows(LoginHalves(login.cookie, ""))
    assert not again.knows(LoginHalves(login.cookie, login.cookie))
    entered = again.authenticate(login)
    assert isinstance(entered, TokenIdentity) and (entered.token, entered.principal) == ("laptop", "laptop")
    assert again.said == []


async def test_the_file_is_its_owner_s_alone_and_has_neither_half_nor_the_token(path: Path) -> None:
    login = await Server(path).login()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    content = path.read_text()
    assert not [secret for secret in (*login, "laptop") if secret in content]
    assert os.listdir(path.parent) == [path.name]


async def test_logging_out_and_revoking_hold_over_a_restart(path: Path) -> None:
    server = Server(path)
    out, revoked, stays = await server.login(), await server.login("phone"), await server.login()
    entered = server.authenticate(out)
    assert isinstance(entered, TokenIdentity)
    await server.cookies.end(entered.cookie)
    await server.cookies.save()
    again = Server(path)
    again.tokens = TOKENS[:1]
    assert [again.knows(login) for login in (out, revoked, stays)] == [False, False, True]


async def test_time_goes_on_while_the_server_is_down(path: Path) -> None:
    server = Server(path)
    login = await server.login()
    assert Server(path, NOW + cookies_module.IDLE_SECONDS - 1).knows(login)
    assert not Server(path, NOW + cookies_module.IDLE_SECONDS).knows(login)
    while server.now < NOW + cookies_module.LIFE_SECONDS - 7200:
        server.now += 7200
        assert server.knows(login)
    await server.cookies.save()
    assert Server(path, NOW + cookies_module.LIFE_SECONDS - 1).knows(login)
    assert not Server(path, NOW + cookies_module.LIFE_SECONDS).knows(login)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many logins were written, each time there were some to write."""
    written: list[int] = []
    write = LoginFile.write

    def count(file: LoginFile, logins: Sequence[StoredLogin]) -> None:
        written.append(len(logins))
        write(file, logins)

    monkeypatch.setattr(LoginFile, "write", count)
    return written


async def test_using_a_login_writes_nothing_until_it_is_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = counted(monkeypatch)
    server = Server(path)
    login = await server.login()
    assert written == [1]
    for _ in range(500):
        assert server.knows(login)
    assert written == [1]
    await server.cookies.save()
    await server.cookies.save()
    assert written == [1, 1]  # nothing has changed between the last two


async def test_the_last_use_is_written_while_the_server_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cookies_module, "SAVE_SECONDS", 0.0)
    server = Server(path)
    login = await server.login()
    written = counted(monkeypatch)
    server.now += cookies_module.IDLE_SECONDS - 1
    assert server.knows(login)
    saving = asyncio.create_task(server.cookies.save_at_intervals())
    await until(lambda: bool(written))
    saving.cancel()
    await server.cookies.save()  # it may be under way
    assert Server(path, NOW + cookies_module.IDLE_SECONDS + 1).knows(login)


async def test_many_changes_at_once_are_written_together_and_none_is_lost(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = counted(monkeypatch)
    server = Server(path)
    logins = await asyncio.gather(*(server.login() for _ in range(50)))
    assert len(written) <= 3
    again = Server(path)
    assert all(again.knows(login) for login in logins)


async def test_a_login_that_is_given_up_while_it_is_written_undoes_no_later_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()
    write = LoginFile.write

    def write_slowly(file: LoginFile, logins: Sequence[StoredLogin]) -> None:
        begun.set()
        may_end.wait(30)
        write(file, logins)

    monkeypatch.setattr(LoginFile, "write", write_slowly)
    server = Server(path)
    impatient = asyncio.create_task(server.login())
    await until(begun.is_set)
    impatient.cancel()
    later = asyncio.create_task(server.login())
    may_end.set()
    login = await later
    assert Server(path).knows(login)


def _row(**changed: object) -> bytes:
    row = {"cookie": "0" * 64, "page_key": "1" * 64, "token": "2" * 64, "made": NOW, "used": NOW} | changed
    return json.dumps({"logins": [row]}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b"{}",
        b'{"logins": {}}',
        b'{"logins": [1]}',
        b"[" * 100_000,
        _row(cookie="short"),
        _row(cookie="G" * 64),
        _row(made="yesterday"),
        _row(used=None),
        b'{"logins": [' + b",".join([_row()[12:-2]] * (LOGINS + 1)) + b"]}",
        b" " * (FILE_BYTES + 1) + _row(),
    ],
)
async def test_a_damaged_file_is_no_login_and_a_line_in_the_log(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    path.chmod(0o600)
    server = Server(path)
    assert len(server.said) == 1
    assert server.said[0].startswith("it ") and server.said[0].endswith("; every browser has to log in again")
    login = await server.login()  # and it is good again
    assert Server(path).knows(login)


async def test_an_intact_row_is_read(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(_row())
    path.chmod(0o600)
    said: list[str] = []
    assert LoginFile(path, said.append).read() == [StoredLogin("0" * 64, "1" * 64, "2" * 64, NOW, NOW)]
    assert said == []


def _open_to_others(path: Path) -> None:
    path.write_bytes(_row())
    path.chmod(0o620)


def _link(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(_row())
    other.chmod(0o600)
    path.symlink_to(other)


@pytest.mark.parametrize(
    "spoil", [_open_to_others, _link, lambda path: os.mkfifo(path, 0o600), lambda path: path.mkdir(0o700)]
)
async def test_what_others_could_have_put_there_is_not_believed(path: Path, spoil: Callable[[Path], object]) -> None:
    path.parent.mkdir()
    spoil(path)
    said: list[str] = []
    assert LoginFile(path, said.append).read() == []
    assert len(said) == 1


async def test_where_it_cannot_be_written_the_old_file_goes_and_who_is_in_stays_in(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(path)
    out, stays = await server.login(), await server.login()

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(login_file_module, "write_private", full)
    entered = server.authenticate(out)
    assert isinstance(entered, TokenIdentity)
    await server.cookies.end(entered.cookie)
    await server.cookies.save()
    assert server.knows(stays) and not server.knows(out)
    assert server.said == ["no space left on device; browsers have to log in again after a restart"]
    assert not Server(path).knows(out)  # a login that has ended does not come back
