"""An OpenID issuer on loopback: keys, a document, pages to log in at, tokens; and what a broken or hostile one does.

`person` is who logs in, without a question. A test changes the attributes to have the issuer misbehave.
"""

import asyncio
import base64
import hashlib
import secrets
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from starlette.types import Receive, Scope, Send

from tests.support.asgi_server import on_loopback

CLIENT = "dragoman-of-a-team"
SECRET = "a:secret/with+signs"


class OpenIdIssuer:
    """The issuer at `url`. `requests` are the paths that were asked for."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[str] = []
        self.person: dict[str, Any] = {"sub": "ada", "groups": ["developers"]}
        self.secret = SECRET
        self.auth_methods = ["client_secret_basic"]
        # What it says otherwise than it should.
        self.document: dict[str, object] = {}
        self.claims: dict[str, Any] = {}
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.delay = 0.0
        self._keys: dict[str, Any] = {}
        self._codes: dict[str, dict[str, str]] = {}
        self.rotate("first")

    def rotate(self, key_id: str, *, keep: bool = False, algorithm: str = "ES256") -> None:
        """Sign with a new key from now on; the former ones are taken back, unless they are kept."""
        self._keys = dict(self._keys) if keep else {}
        is_rsa = algorithm.startswith(("RS", "PS"))
        key: Any = rsa.generate_private_key(65537, 2048) if is_rsa else ec.generate_private_key(ec.SECP256R1())
        self._keys[key_id] = key
        self.key_id, self.key, self.algorithm = key_id, key, algorithm

    def key_set(self) -> list[dict[str, Any]]:
        found = []
        for key_id, key in self._keys.items():
            kind = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
            found.append(kind.to_jwk(key.public_key(), as_dict=True) | {"kid": key_id, "use": "sig"})
        return found

    def token(self, *, head: dict[str, Any] | None = None, **claims: Any) -> str:
        """A token for our client, with these claims beside or instead of the usual ones; None leaves one out."""
        now = int(time.time())
        usual = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300, **self.person, **self.claims, **claims}
        said = {name: value for name, value in usual.items() if value is not None}
        return jwt.encode(said, self.key, algorithm=self.algorithm, headers={"kid": self.key_id, **(head or {})})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return None
        path = scope["path"]
        self.requests.append(path)
        await asyncio.sleep(self.delay)
        if path in self.answers:
            return await _answer(send, *self.answers[path])
        if path == "/.well-known/openid-configuration":
            return await _answer(send, 200, msgspec.json.encode(self._description() | self.document))
        if path == "/keys":
            return await _answer(send, 200, msgspec.json.encode({"keys": self.key_set()}))
        if path == "/authorize":
            return await _answer(send, 302, b"", self.log_in(scope["query_string"].decode()))
        if path == "/token":
            return await _answer(send, *self._exchange(scope, await _body(receive)))
        return await _answer(send, 404, b"")

    def log_in(self, query: str) -> str:
        """Log `person` in; where the browser is sent."""
        asked = {name: values[0] for name, values in parse_qs(query, strict_parsing=True).items()}
        assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT)
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state'], 'iss': self.url})}"

    def _description(self) -> dict[str, object]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "token_endpoint_auth_methods_supported": self.auth_methods,
        }

    def _exchange(self, scope: Scope, body: bytes) -> tuple[int, bytes]:
        form = {name: values[0] for name, values in parse_qs(body.decode(), strict_parsing=True).items()}
        asked = self._codes.pop(form.get("code", ""), None)
        verifier = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if (
            asked is None
            or not self._is_client(dict(scope["headers"]), form)
            or form["redirect_uri"] != asked["redirect_uri"]
            or base64.urlsafe_b64encode(verifier).rstrip(b"=").decode() != asked["code_challenge"]
        ):
            return 400, b'{"error": "invalid_grant"}'
        claims: dict[str, Any] = {"nonce": asked["nonce"]} | self.claims
        return 200, msgspec.json.encode({"token_type": "Bearer", "id_token": self.token(**claims)})

    def _is_client(self, headers: dict[bytes, bytes], form: dict[str, str]) -> bool:
        if not self.secret:
            return form["client_id"] == CLIENT
        if self.auth_methods == ["client_secret_post"]:
            return (form["client_id"], form.get("client_secret")) == (CLIENT, self.secret)
        # As RFC 6749 2.3.1 writes it: quoted, so that a colon is none of theirs.
        pair = base64.b64encode(f"{CLIENT}:a%3Asecret%2Fwith%2Bsigns".encode())
        return headers.get(b"authorization") == b"Basic " + pair


async def _body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        event = await receive()
        body += event.get("body", b"")
        if not event.get("more_body"):
            return bytes(body)


async def _answer(send: Send, status: int, body: bytes, location: str = "") -> None:
    headers = [(b"content-type", b"application/json"), *([(b"location", location.encode())] if location else [])]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


@asynccontextmanager
async def openid_issuer() -> AsyncIterator[OpenIdIssuer]:
    """An issuer on a port of this machine."""
    listener = socket.create_server(("127.0.0.1", 0))
    app = OpenIdIssuer(f"http://127.0.0.1:{listener.getsockname()[1]}")
    async with on_loopback(app, listener):
        yield app
