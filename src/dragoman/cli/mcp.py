"""`dragoman mcp`: the user's MCP servers; list, add and remove them, try one, log in at one and out again."""

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from dragoman.cli.common_options import Commands, add_action, add_command, keep_command, take_words_behind_options
from dragoman.cli.errors import NOT_DONE, CommandError, print_error, print_notice
from dragoman.cli.managed import managed_settings

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from dragoman.coder.mcp import Config, McpServerStatus
    from dragoman.coder.mcp.callback import LoginCallback
    from dragoman.coder.mcp.sdk.oauth import ShowUrl

_DESCRIPTION = """\
The MCP servers of config.toml ([mcp.NAME]), and those of the project in this
folder that you have trusted. A server behind a URL may want a login (OAuth):
`login` opens its page in your browser and keeps what comes of it in a file that
you alone can read; sessions use and renew it.
"""
_EPILOG = """\
  dragoman mcp list
  dragoman mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  dragoman mcp add tickets https://tickets.example.org/mcp
  dragoman mcp test files
  dragoman mcp login tickets
  dragoman mcp login https://tickets.example.org/mcp --no-browser
  dragoman mcp logout tickets

Exit codes: 0 done, 1 not done, 2 wrong usage.
"""
_LOGIN_SECONDS = 300


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(
        commands, "mcp", "list, add, remove, test, log in at MCP servers", _DESCRIPTION, epilog=_EPILOG
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    listing = add_action(actions, "list", "the servers, and which have a login", as_json="one JSON array of servers")
    adding = add_action(
        actions,
        "add",
        "write a server into config.toml",
        usage="dragoman mcp add [options] NAME (URL | -- CMD ...)",
    )
    adding.add_argument("server", metavar="NAME", help="what you call it")
    adding.add_argument("urls", metavar="URL", nargs="*", help="of a server behind an address")
    take_words_behind_options(adding, "urls")
    adding.add_argument(
        "--env", metavar="NAME=VALUE", action="append", default=[], type=_pair, help="of a program; $NAME is a variable"
    )
    adding.add_argument(
        "--header",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        type=_pair,
        help="sent to an address",
    )
    adding.add_argument("--sse", action="store_true", help="the address speaks the former transport, SSE")
    keep_command(adding)
    remove = add_action(actions, "remove", "take a server out of config.toml")
    remove.add_argument("server", metavar="NAME", help="as `list` shows it")
    test = add_action(
        actions, "test", "start or call a server, and show what it offers", as_json="the outcome as a JSON object"
    )
    test.add_argument("server", metavar="NAME", help="as `list` shows it")
    login = add_action(actions, "login", "log in at a server with your browser")
    login.add_argument("server", metavar="NAME|URL", help="as `list` shows it, or its address")
    login.add_argument("--no-browser", action="store_true", help="only print the address of the page")
    login.add_argument("--client-id", metavar="ID", default="", help="a client that the operator has given out")
    login.add_argument("--client-secret-file", metavar="FILE", help="its secret, in the first line of FILE")
    login.add_argument("--scope", metavar="SCOPES", default="", help="rights to ask for, where the server names none")
    login.add_argument("--port", metavar="N", type=int, default=0, help="port of this machine for the answer")
    login.add_argument(
        "--timeout", metavar="SECONDS", type=int, default=_LOGIN_SECONDS, help="wait so long for the browser; 300"
    )
    logout = add_action(actions, "logout", "revoke a login and delete it")
    logout.add_argument("server", metavar="NAME|URL", help="as for login")
    for action in (listing, test, login, logout):
        action.add_argument("-C", "--cwd", metavar="DIR", default=".", help="a project; this folder if left out")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from dragoman.coder.mcp.logins import LoginFailed
    from dragoman.errors import RequestFailed

    try:
        match arguments.action:
            case "list":
                return _list(arguments)
            case "add":
                return _add(arguments)
            case "remove":
                return _remove(arguments.server)
            case "test":
                return _run(_test(arguments))
            case "login":
                return _run(_login(arguments))
            case _:
                return _run(_logout(arguments))
    except LoginFailed as error:
        return print_error(f"{arguments.server} {error}", NOT_DONE)
    except RequestFailed as error:
        return print_error(error.message, NOT_DONE)


def _run(work: "Coroutine[Any, Any, int]") -> int:
    import asyncio

    return asyncio.run(work)


# -- list ------------------------------------------------------------------------------------------------------------


def _list(arguments: argparse.Namespace) -> int:
    from dragoman.coder.mcp.config import describe, name_of

    servers = _servers(arguments.cwd)
    rows = [
        {"name": name_of(server), "type": _kind(server), "what": describe(server), "login": _login_state(server)}
        for server in servers
    ]
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return 0
    from dragoman.cli.text_width import harmless_line, pad

    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        login = f"  ({row['login']})" if row["login"] else ""
        print(f"{pad(harmless_line(row['name']), width)}  {harmless_line(row['what'])}{login}")
    if not rows:
        print("There are no MCP servers; `dragoman mcp add NAME -- CMD` adds one.", file=sys.stderr)
    return 0


def logins(folder: str) -> dict[str, str]:
    """Return the servers that can have a login, and whether they have one."""
    from dragoman.coder.mcp.config import name_of

    return {name_of(server): state for server in _servers(folder) if (state := _login_state(server))}


def _kind(server: "Config") -> str:
    from dragoman.vocabulary.requests import UnknownMcp

    return server.kind if isinstance(server, UnknownMcp) else str(server.__struct_config__.tag)


def _login_state(server: "Config") -> str:
    """Return whether a server has a login, in words; empty for one that can have none."""
    from dragoman.coder.mcp.logins import LoginFailed, McpLoginFile
    from dragoman.vocabulary.requests import McpHttp, McpSse

    if not isinstance(server, McpHttp | McpSse):
        return ""
    try:
        login = McpLoginFile(_logins(), server.url).read()
    except LoginFailed as error:
        return str(error)
    return "logged in" if login is not None and login.tokens else "no login"


# -- add and remove --------------------------------------------------------------------------------------------------


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _add(arguments: argparse.Namespace) -> int:
    from dragoman.cli.config_file import ConfigFile
    from dragoman.cli.home import own_path
    from dragoman.cli.settings import read_settings

    command: list[str] | None = arguments.command_given
    urls: list[str] = arguments.urls
    if len(urls) != (1 if command is None else 0):
        raise CommandError("which server? Write its URL, or its command after a --: dragoman mcp add NAME -- CMD")
    if command == []:
        raise CommandError("which command? Write it after the --")
    if arguments.server in read_settings().tables["mcp"]:
        raise CommandError(f"there is an MCP server {arguments.server!r} already; `dragoman mcp remove` removes it")
    table: dict[str, object] = {}
    if command is not None:
        if arguments.header or arguments.sse:
            raise CommandError("--header and --sse go with a URL")
        table = {"command": command[0]} | ({"args": command[1:]} if command[1:] else {})
        table |= {"env": dict(arguments.env)} if arguments.env else {}
    else:
        if arguments.env:
            raise CommandError("--env goes with a command; --header is sent to an address")
        table = {"type": "sse", "url": urls[0]} if arguments.sse else {"url": urls[0]}
        table |= {"headers": dict(arguments.header)} if arguments.header else {}
    file = ConfigFile(own_path("config.toml"))
    for key, value in table.items():
        file.set(["mcp", arguments.server, key], value)
    file.save()
    print(f"Added to {own_path('config.toml')}; `dragoman mcp test {arguments.server}` tries it.")
    return 0


def _remove(name: str) -> int:
    from dragoman.cli.config_file import ConfigFile
    from dragoman.cli.home import own_path
    from dragoman.cli.settings import read_settings

    has_url = "url" in read_settings().tables["mcp"].get(name, {})
    file = ConfigFile(own_path("config.toml"))
    if not file.remove(["mcp", name]):
        return print_error(f"there is no MCP server {name!r} in {own_path('config.toml')}", NOT_DONE)
    file.save()
    print("Removed. A login at it stays until `dragoman mcp logout` with its URL." if has_url else "Removed.")
    return 0


# -- test ------------------------------------------------------------------------------------------------------------


async def _test(arguments: argparse.Namespace) -> int:
    """Connect to one server as a session does, and say what came of it."""
    from dragoman.coder.mcp import McpServers
    from dragoman.host.guardian import Guardian

    server = _find(arguments.server, arguments.cwd)
    folder = os.path.abspath(arguments.cwd)
    guardian = Guardian()

    async def notice(text: str, description: str = "") -> None:
        """The outcome has it."""

    servers = McpServers(
        [server],
        environment=os.environ,
        cwd=folder,
        guardian=guardian,
        notice=notice,
        changed=lambda: None,
        logins=_logins(),
    )
    servers.start()
    try:
        await servers.wait_until_started(_LOGIN_SECONDS)
        (status,) = servers.status()
    finally:
        await servers.close()
        guardian.close()
    _print_status(status, as_json=arguments.json)
    return 0 if status.state == "connected" else NOT_DONE


def _print_status(status: "McpServerStatus", *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(status._asdict(), indent=1))
        return
    from dragoman.cli.text_width import harmless_line

    print(harmless_line(f"{status.name}: {status.state}" + (f": {status.error}" if status.error else "")))
    for what, names in (("tools", status.tools), ("prompts", status.prompts), ("resources", status.resources)):
        if names:
            print(f"{what} ({len(names)}):")
            for name in names:
                print(f"  {harmless_line(name)}")
    if status.state != "connected" and status.stderr:
        print("stderr:")
        for line in status.stderr.splitlines()[-20:]:
            print(f"  {harmless_line(line)}")


# -- login and logout ------------------------------------------------------------------------------------------------


async def _login(arguments: argparse.Namespace) -> int:
    from dragoman.coder.mcp.logins import McpLoginFile

    url = _address(arguments.server, arguments.cwd)
    oauth = _sdk()
    choice = oauth.ClientChoice(
        client_id=arguments.client_id,
        client_secret=_first_line(arguments.client_secret_file),
        scope=arguments.scope,
        port=arguments.port,
    )
    show = _shower(browser=not arguments.no_browser)
    if not await oauth.new_login(url, McpLoginFile(_logins(), url), show, float(arguments.timeout), choice):
        print_notice(f"{arguments.server} wants no login")
        return 0
    print(f"Logged in at {arguments.server}. `dragoman mcp logout {arguments.server}` ends it.")
    return 0


async def _logout(arguments: argparse.Namespace) -> int:
    from dragoman.coder.mcp.logins import McpLoginFile

    url = _address(arguments.server, arguments.cwd)
    file = McpLoginFile(_logins(), url)
    if file.read() is None:
        return print_error(f"no login at {arguments.server} is kept here", NOT_DONE)
    revoked = await _sdk().revoke_login(url, file)
    end = "and its server has revoked it" if revoked else "but its server has not said that it is revoked"
    print(f"The login at {arguments.server} is deleted here, {end}.")
    return 0


def _shower(*, browser: bool) -> "ShowUrl":
    """Return what shows the page of a login: in the browser of a person at a terminal, and as a line in any case."""
    is_person = sys.stdin.isatty() and sys.stderr.isatty()

    async def show(url: str, callback: "LoginCallback") -> None:
        opened = browser and is_person and await _open_browser(url)
        head = "Your browser opens this page; log in there" if opened else "Open this page in your browser, and log in"
        print(f"{head}:\n\n  {url}\n", file=sys.stderr, flush=True)
        if is_person:
            print("Is the browser on another machine? Paste the address that it ends at:", file=sys.stderr, flush=True)
            _read_pasted(callback)

    return show


async def _open_browser(url: str) -> bool:
    """Open the page where there is a desktop: a browser in this terminal would be in the way of our own words."""
    if sys.platform != "darwin" and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))):
        return False
    import webbrowser

    from dragoman.background import call_in_background

    return bool(await call_in_background(lambda: webbrowser.open(url)))


def _read_pasted(callback: "LoginCallback") -> None:
    """Take a pasted address for the browser's answer, until the loop ends."""
    import asyncio

    loop = asyncio.get_running_loop()

    def read() -> None:
        line = sys.stdin.readline()
        if not line or callback.receive(line):
            loop.remove_reader(sys.stdin)
        elif line.strip():
            print("That is not the address of this login; it has /callback?code=… in it.", file=sys.stderr)

    loop.add_reader(sys.stdin, read)


# -- what the actions share --------------------------------------------------------------------------------------------


def _sdk() -> Any:
    """Return the module that logs in; `CommandError` where the SDK is not installed."""
    try:
        from dragoman.coder.mcp.sdk import oauth
    except ImportError:
        from dragoman.errors import how_to_install

        raise CommandError(f"this needs the package mcp, which is not installed: {how_to_install('mcp')}") from None
    return oauth


def _servers(folder: str) -> "list[Config]":
    from dragoman.cli.builtin_agent import mcp_servers, project_remarks
    from dragoman.cli.settings import read_settings

    if not os.path.isdir(folder):
        raise CommandError(f"{folder}: no such folder")
    folder = os.path.abspath(folder)
    for remark in project_remarks(folder):
        print_notice(remark)
    return mcp_servers(read_settings(), folder)


def _find(name: str, folder: str) -> "Config":
    from dragoman.coder.mcp.config import name_of

    servers = _servers(folder)
    for server in servers:
        if name_of(server) == name:
            return _allowed(server)
    known = ", ".join(map(name_of, servers)) or "none"
    raise CommandError(f"there is no MCP server {name!r}; there are {known}")


def _allowed(server: "Config") -> "Config":
    """Return a server that the administrator allows. Raises `CommandError` for another."""
    settings = managed_settings()
    if settings is not None and not settings.mcp.allows(server):
        raise CommandError(settings.says("this MCP server"))
    return server


def _address(server: str, folder: str) -> str:
    """Return the URL of a server that can be logged in to, by its name or its address."""
    from dragoman.vocabulary.requests import McpHttp, McpSse

    if server.startswith(("http://", "https://")):
        _allowed(McpHttp(server, server))
        return server
    found = _find(server, folder)
    if not isinstance(found, McpHttp | McpSse):
        raise CommandError(f"{server} is a program; only a server behind a URL has a login")
    if any(header.name.lower() == "authorization" for header in found.headers or ()):
        raise CommandError(
            f"{server} has a header Authorization in its configuration, which is used in place of a login"
        )
    return found.url


def _first_line(path: str | None) -> str:
    if path is None:
        return ""
    from dragoman.host.regular_file import read_regular

    try:
        return read_regular(path, 8192).decode().partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError):
        raise CommandError(f"{path}: cannot be read") from None


def _logins() -> str:
    from dragoman.cli.home import data_folder
    from dragoman.coder.setup import LOGINS

    return os.path.join(data_folder(), LOGINS)
