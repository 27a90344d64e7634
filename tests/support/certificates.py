"""Certificates that only their own holder trusts."""

import ssl
import subprocess
from pathlib import Path

from tests.support.needs import need


def make_certificate(folder: Path, name: str = "example.com") -> Path:
    """Return a file with a certificate for a host and its key."""
    command = [need("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_bytes((folder / "cert.pem").read_bytes() + (folder / "key.pem").read_bytes())
    return both


def certificate_files(folder: Path, name: str = "localhost") -> tuple[Path, Path]:
    """Return a certificate for a host, which is its own authority, and its key; a folder has one of them."""
    folder.mkdir(exist_ok=True)
    make_certificate(folder, name)
    return folder / "cert.pem", folder / "key.pem"


def server_side(certificate: Path, *protocols: str) -> ssl.SSLContext:
    """Return the context of a server that has this certificate and speaks these protocols (ALPN)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


def client_side(certificate: Path) -> ssl.SSLContext:
    """Return the context of a client that trusts this certificate and no other."""
    return ssl.create_default_context(cafile=str(certificate))
