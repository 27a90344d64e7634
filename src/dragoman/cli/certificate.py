"""A server's certificate and key, looked at before it listens: what is wrong is told in a sentence, with the file."""

from pathlib import Path

from dragoman.cli.errors import CommandError


def check_pair(certificate: Path, key: Path) -> None:
    """Check that TLS works with these files. Raises `CommandError`."""
    import ssl

    for option, file in (("--certificate", certificate), ("--key", key)):
        try:
            with file.open("rb"):
                pass
        except OSError as error:
            raise CommandError(f"{option} {file}: {(error.strerror or 'cannot be read').lower()}") from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_verify_locations(certificate)
    except ssl.SSLError:
        raise CommandError(f"--certificate {certificate}: this is no certificate in PEM") from None
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise CommandError(f"--key {key}: this is not the key of {certificate}") from None
        raise CommandError(f"--key {key}: this is no private key in PEM, without a password") from None


def _no_password() -> str:
    """OpenSSL would ask for one at the terminal."""
    return ""
