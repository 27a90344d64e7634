"""Which addresses are of the public internet, and which URLs may be asked for at all.

What is not known to be public is not: a block that may be routed inside of a private network, an address that holds
another one (mapped, 6to4, NAT64, Teredo), a name that is local by definition. Numbers are from the IANA registries of
special-purpose addresses (RFC 6890 and its successors). Pure: nothing is resolved here.
"""

import ipaddress
import re
from collections.abc import Collection
from typing import Final, NamedTuple
from urllib.parse import quote, urljoin, urlsplit

from dragoman.errors import WorldError

# Servers take 8 KiB for a request line.
URL_CHARACTERS: Final = 8 * 1024
_HOST_CHARACTERS: Final = 253
_LABEL_CHARACTERS: Final = 63
DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_NOT_PUBLIC_4: Final = tuple(
    ipaddress.IPv4Network(block)
    for block in (
        "0.0.0.0/8",  # this network; Linux takes it for loopback
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carriers' own (CGNAT), and a cloud's metadata
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # a cloud's metadata, on an address that looks public
        "169.254.0.0/16",  # link-local, and most clouds' metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays to 6to4
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
# All that is global unicast. Loopback, mapped and compatible addresses, NAT64, ULA (fc00::/7), link-local, site-local
# and multicast lie outside.
_GLOBAL_6: Final = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_6: Final = tuple(
    ipaddress.IPv6Network(block)
    for block in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
)
# Names that never mean a host of the public internet (RFC 6761, 6762, 8375, 9476, and habit).
_LOCAL_NAMES: Final = ("localhost", "localdomain", "local", "internal", "intranet", "lan", "home", "corp", "home.arpa")
# Ports above 1023 behind which something listens that is no web server; browsers refuse them, too.
_OTHER_PORTS: Final = frozenset(
    {1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, *range(6665, 6670), 6679, 6697, 10080, 11211}
)
_NAME: Final = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_KEPT_IN_TARGET: Final = "/?:@!$&'()*+,;=-._~%"


class UrlRefused(WorldError):
    """A URL that is not asked for. The text is fit for the model."""


class CheckedUrl(NamedTuple):
    """A URL that may be asked for, if its host's addresses are public too. `host` is ASCII, lower case, undotted."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """Host and port as they stand in a request."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def text(self) -> str:
        """The whole URL."""
        return f"{self.scheme}://{self.authority}{self.target}"


def is_public(ip: str) -> bool:
    """Return whether an address is a host's on the public internet."""
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in block for block in _NOT_PUBLIC_4)
    if address.scope_id is not None:
        return False
    return address in _GLOBAL_6 and not any(address in block for block in _NOT_PUBLIC_6)


def check_url(text: str) -> CheckedUrl:
    """Return the URL taken apart; refused unless it plainly means a web page on a public host."""
    _check_characters(text)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise UrlRefused("That is no URL.") from error
    if parts.scheme not in DEFAULT_PORTS:
        raise UrlRefused("Only http:// and https:// can be fetched.")
    if "@" in parts.netloc:
        raise UrlRefused("The URL holds a user name; leave out everything before the @.")
    host = _checked_host(parts.netloc, parts.hostname or "")
    if port is None:
        port = DEFAULT_PORTS[parts.scheme]
    if port not in DEFAULT_PORTS.values() and (port < 1024 or port in _OTHER_PORTS):
        raise UrlRefused(f"Port {port} is not one of a web server.")
    return CheckedUrl(parts.scheme, host, port, _target(parts.path, parts.query))


def check_reference(text: str, base: CheckedUrl) -> CheckedUrl:
    """Return a URL that may be relative to `base`, checked as by `check_url`; `UrlRefused` if it does not pass."""
    _check_characters(text)  # before it is joined: joining drops some of what must not be there
    try:
        return check_url(urljoin(base.text, text))
    except ValueError as error:
        raise UrlRefused("That is no URL.") from error


def canonical_host(name: str) -> str:
    """Return one spelling for one host: ASCII, lower case, without the dot at the end. Refused if it is no name."""
    if len(name) > _HOST_CHARACTERS + 1:
        raise UrlRefused("The URL has no proper host.")
    try:
        ascii_name = name if name.isascii() else name.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise UrlRefused("The host's name cannot be written in DNS.") from error
    ascii_name = ascii_name.lower().removesuffix(".")
    if len(ascii_name) > _HOST_CHARACTERS or not _NAME.fullmatch(ascii_name):
        raise UrlRefused("The URL has no proper host.")
    if any(len(label) > _LABEL_CHARACTERS for label in ascii_name.split(".")):
        raise UrlRefused("The URL has no proper host.")
    return ascii_name


def is_allowed(host: str, allowed: str) -> bool:
    """Return whether a host is the allowed one, or below it for `*.name`. Both may be spelled in any way."""
    try:
        if allowed.startswith("*."):
            return canonical_host(host).endswith(f".{canonical_host(allowed[2:])}")
        return canonical_host(host) == canonical_host(allowed)
    except UrlRefused:
        return False


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL in one spelling. Raise `UrlRefused` if it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
    except ValueError as error:
        raise UrlRefused("That is no URL.") from error
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or "@" in parts.netloc:
        raise UrlRefused("That is no http:// or https:// URL.")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else canonical_host(parts.hostname)
    return f"{parts.scheme}://{host}:{port}"


def check_target(url: str, origins: Collection[str]) -> bool:
    """Return whether a URL has one of the allowed origins. Raise `UrlRefused` if it has not, and is no https:// URL of
    a public host either."""
    if origin_of(url) in origins:
        return True
    if check_url(url).scheme != "https":
        raise UrlRefused("Only https:// addresses are called, so that others cannot read along.")
    return False


def _check_characters(text: str) -> None:
    if len(text) > URL_CHARACTERS:
        raise UrlRefused(f"The URL is longer than {URL_CHARACTERS} characters.")
    if any(ord(sign) <= 0x20 or sign in "\\\x7f" or 0x80 <= ord(sign) <= 0xA0 for sign in text):
        raise UrlRefused("The URL holds a space, a backslash or a control character.")


def _checked_host(authority: str, name: str) -> str:
    if authority.startswith("["):
        if not is_public(name):
            raise UrlRefused(f"{name} is not a public address.")
        return str(ipaddress.ip_address(name))
    host = canonical_host(name)
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        # A resolver would take 2130706433, 0x7f.1 and 0177.0.0.1 for addresses; only the plain form is read here.
        if not is_public(host):
            raise UrlRefused(f"{host} is not a public address.")
        return host
    if "." not in host or host.endswith(tuple(f".{name}" for name in _LOCAL_NAMES)):
        raise UrlRefused(f"{host} is a name of a local network.")
    return host


def _target(path: str, query: str) -> str:
    target = f"{path or '/'}?{query}" if query else path or "/"
    return quote(target if target.startswith("/") else f"/{target}", safe=_KEPT_IN_TARGET)
