"""Bedrock and Vertex AI on loopback, as their client libraries speak to them: signed requests, tokens, event streams.

A request without the credentials that were given out is refused as the real services do. Google's tokens are given out
at another path of the same address.
"""

import binascii
import json
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from ssl import SSLContext

    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

TOKEN: Final = "ya29.canary-token-of-the-machine"
ACCESS_KEY: Final = "AKIACANARY0123456789"


class CloudRequest(NamedTuple):
    """A request for a model."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class CloudServer:
    """`events` are streamed to Bedrock's clients, `chunks` to Vertex's; a `status` other than 200 refuses."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[CloudRequest] = []
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.chunks: list[dict[str, Any]] = []
        self.status = 200
        self.login_ends = False
        self.error: dict[str, Any] = {}

    def answer(self, request: CloudRequest) -> tuple[int, str, bytes]:
        """Return status, content type and body."""
        self.requests.append(request)
        if not self._is_signed(request):
            return 403, "application/json", b'{"message": "The security token included in the request is invalid."}'
        if self.status != 200:
            return self.status, "application/json", json.dumps(self.error).encode()
        if "converse-stream" in request.path:
            stream = b"".join(aws_event(name, payload) for name, payload in self.events)
            return 200, "application/vnd.amazon.eventstream", stream
        return 200, "text/event-stream", b"".join(b"data: %s\n\n" % json.dumps(one).encode() for one in self.chunks)

    def google_account(self, key: "RSAPrivateKey") -> dict[str, str]:
        """The file of a service account whose tokens are given out here."""
        from cryptography.hazmat.primitives import serialization

        form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        return {
            "type": "service_account",
            "project_id": "my-project",
            "client_email": "agent@my-project.iam.gserviceaccount.com",
            "private_key": key.private_bytes(serialization.Encoding.PEM, form, plain).decode(),
            "token_uri": f"{self.url}/token",
        }

    def token_answer(self, body: bytes) -> tuple[int, str, bytes]:
        """Return the answer to a request for a token: none without an assertion, or after `login_ends`."""
        if self.login_ends or b"assertion=" not in body:
            return 400, "application/json", b'{"error": "invalid_grant"}'
        token = {"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"}
        return 200, "application/json", json.dumps(token).encode()

    def _is_signed(self, request: CloudRequest) -> bool:
        given = request.headers.get("authorization", "")
        is_aws = given.startswith(f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/") and "Signature=" in given
        return is_aws or given in (f"Bearer {TOKEN}", f"Bearer {ACCESS_KEY}")


def aws_event(name: str, payload: dict[str, Any]) -> bytes:
    """One message of `application/vnd.amazon.eventstream`: lengths and a checksum, headers, payload, a checksum."""
    headers = b"".join(
        bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for key, value in {
            ":event-type": name,
            ":content-type": "application/json",
            ":message-type": "event",
        }.items()
    )
    body = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(body), len(headers))
    message = prelude + struct.pack(">I", binascii.crc32(prelude)) + headers + body
    return message + struct.pack(">I", binascii.crc32(message))


@contextmanager
def cloud_server(tls: "SSLContext | None" = None) -> Iterator[CloudServer]:
    """Serve on a free port until the block is left; with `tls` as `localhost`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers.get("content-length", 0)))
            if self.path == "/token":
                self._reply(*server.token_answer(data))
            else:
                headers = {name.lower(): value for name, value in self.headers.items()}
                self._reply(*server.answer(CloudRequest(self.path, headers, json.loads(data or b"{}"))))

        def _reply(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        http.socket = tls.wrap_socket(http.socket, server_side=True)
    port = http.server_address[1]
    server = CloudServer(f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
