"""`dragoman serve` that cannot do what it was told: one sentence with the file or the folder, before it listens."""

import subprocess
from pathlib import Path

import pytest

from tests.cli.test_builtin_agent import dragoman
from tests.support.needs import need


def certificate(folder: Path, name: str, *protection: str) -> tuple[str, str]:
    made = str(folder / f"{name}.pem"), str(folder / f"{name}-key.pem")
    command = [need("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-days", "1"]
    command += [*(protection or ["-nodes"]), "-subj", "/CN=localhost", "-out", made[0], "-keyout", made[1]]
    subprocess.run(command, check=True, capture_output=True)
    return made


@pytest.mark.parametrize(
    ("which", "sentence"),
    [
        ("no certificate", "--certificate {folder}/nowhere: no such file or directory"),
        ("no key", "--key {folder}/nowhere: no such file or directory"),
        ("torn certificate", "--certificate {folder}/torn: this is no certificate in PEM"),
        ("torn key", "--key {folder}/torn: this is no private key in PEM, without a password"),
        ("locked key", "--key {folder}/c-key.pem: this is no private key in PEM, without a password"),
        ("another's key", "--key {folder}/b-key.pem: this is not the key of {folder}/a.pem"),
    ],
)
def test_a_certificate_or_key_that_cannot_be_used_is_named(which: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "torn").write_text("-----BEGIN CERTIFICATE-----\nnot base 64\n")
    good, key = certificate(tmp_path, "a")
    given = {
        "no certificate": lambda: (f"{tmp_path}/nowhere", key),
        "no key": lambda: (good, f"{tmp_path}/nowhere"),
        "torn certificate": lambda: (f"{tmp_path}/torn", key),
        "torn key": lambda: (good, f"{tmp_path}/torn"),
        "locked key": lambda: certificate(tmp_path, "c", "-passout", "pass:secret"),
        "another's key": lambda: (good, certificate(tmp_path, "b")[1]),
    }[which]()
    done = dragoman(tmp_path / "home", "serve", "--certificate", given[0], "--key", given[1])
    assert (done.code, done.out) == (2, "")
    assert done.error == f"dragoman: {sentence.format(folder=tmp_path)}\n"


@pytest.mark.parametrize("place", ["gateway", "sessions"])
def test_a_folder_that_cannot_be_written_is_named_before_it_listens(place: str, tmp_path: Path) -> None:
    (tmp_path / place).write_text("a file where a folder should be")
    done = dragoman(tmp_path, "serve", "--model", "demo")
    assert done.code == 2
    assert done.error.startswith(f"dragoman: {tmp_path / place}: cannot be written (")
    assert done.error.endswith("; DRAGOMAN_HOME can name another folder\n")
    assert done.error.count("\n") == 1


def test_a_token_that_cannot_be_kept_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "gateway").write_text("a file where a folder should be")
    done = dragoman(tmp_path, "tokens", "create", "phone")
    assert (done.code, done.out, done.error.count("\n")) == (2, "", 1)
    assert str(tmp_path / "gateway") in done.error


@pytest.mark.parametrize("port", ["abc", "0", "65536", "-1", "١"])
def test_a_port_is_a_number(port: str, tmp_path: Path) -> None:
    done = dragoman(tmp_path, "serve", f"--port={port}")
    assert done.code == 2
    assert done.error.endswith("argument --port: a port is a number from 1 to 65535\n")


def test_the_doctor_finds_a_store_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("a file where a folder should be")
    done = dragoman(tmp_path, "doctor")
    assert done.code == 1
    assert f"BROKEN  store     {tmp_path / 'sessions'}: cannot be written (not a directory)" in done.out
