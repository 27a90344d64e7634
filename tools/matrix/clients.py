"""The clients of the matrix: how each is started with the agent of `dragoman check` in the place of its own."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.needs import ROOT, need_acpx, need_agentao
from tests.support.sdk_peers import PYTHON_V2
from tools import peers

_DRIVER: Final = str(Path(__file__).with_name("plan_driver.py"))


class MatrixClient(NamedTuple):
    """A client. In `command`, `{agent}` and `{argv}` are what `dragoman check client` puts in; `options` are for it."""

    name: str
    version: str
    command: Callable[[], list[str]]
    environment: Callable[[Path], Mapping[str, str]]
    options: Sequence[str] = ()


def _home(home: Path) -> Mapping[str, str]:
    return {"HOME": str(home), "PYTHONPATH": str(ROOT)}


def _python_v2(home: Path) -> Mapping[str, str]:
    return {"HOME": str(home), **PYTHON_V2.environment()}


def _driven(*client: str) -> list[str]:
    """A client of the interop tests, which is told on stdin what to do: a prompt, and a no to every permission."""
    return [sys.executable, _DRIVER, *client, "--", "{argv}"]


def _acpx() -> list[str]:
    return [*need_acpx(), "--agent", "{agent}", "--deny-all", "exec", "hello"]


def _ours(home: Path) -> Mapping[str, str]:
    return {"HOME": str(home), "DRAGOMAN_HOME": str(home)}


_SDK: Final = str(ROOT / "tests" / "interop" / "peers")
# Of a plan there is one prompt; nothing in it is stopped by a signal.
_NO_SIGNAL: Final = ("--interrupt", "none")

CLIENTS: Final = (
    MatrixClient(
        "dragoman run",
        "this one",
        lambda: [sys.executable, "-P", "-m", "dragoman.cli.main", "run", "hello", "--", "{argv}"],
        _ours,
    ),
    MatrixClient("acpx", peers.ACPX, _acpx, _home),
    MatrixClient(
        "TypeScript SDK, version 1",
        peers.NPM_PACKAGES["@agentclientprotocol/sdk"],
        lambda: _driven("node", f"{_SDK}/client_v1.mjs"),
        _home,
        (*_NO_SIGNAL, "--protocol", "1"),
    ),
    MatrixClient(
        "TypeScript SDK, version 2",
        peers.NPM_PACKAGES["@agentclientprotocol/sdk"],
        lambda: _driven("node", f"{_SDK}/client_v2.mjs"),
        _home,
        (*_NO_SIGNAL, "--protocol", "2"),
    ),
    MatrixClient(
        "Python SDK, version 1",
        "0.12.1",
        lambda: _driven(sys.executable, "-m", "tests.interop.peers.client_v1"),
        _home,
        (*_NO_SIGNAL, "--protocol", "1"),
    ),
    MatrixClient(
        "Python SDK, version 2",
        peers.PYTHON_V2[1],
        lambda: _driven(sys.executable, "-m", "tests.interop.peers.client_v2"),
        _python_v2,
        (*_NO_SIGNAL, "--protocol", "2"),
    ),
    MatrixClient(
        "Agentao's client",
        peers.AGENTAO[0].partition("==")[2],
        lambda: _driven(*need_agentao("tests.interop.peers.client_agentao")),
        _home,
        (*_NO_SIGNAL, "--protocol", "1"),
    ),
)
