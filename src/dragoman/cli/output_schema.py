"""Answers that fit a JSON schema: what the agent is told, and whether its answer is one.

`dragoman run --output-schema FILE` asks any agent for it in words, looks at the answer, and asks again with what was
wrong. Nothing is made up here: an answer that does not fit in the end is an error.
"""

import json
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from dragoman.cli.errors import CommandError
from dragoman.errors import how_to_install
from dragoman.host.regular_file import read_regular

SCHEMA_BYTES: Final = 256 * 1024
# Mistakes that the agent is told at once.
_MISTAKES: Final = 10
_MISTAKE_CHARACTERS: Final = 300
_FENCE: Final = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?```", re.DOTALL)


class Checked(NamedTuple):
    """An answer that was looked at: the value it is, or what is wrong with it (empty: nothing)."""

    value: object
    complaint: str


class OutputSchema:
    """A schema, read from a file."""

    def __init__(self, text: str, mistakes: "Callable[[Any], list[str]]") -> None:
        self._text = text
        self._mistakes = mistakes

    @property
    def instructions(self) -> str:
        """Return what is said to the agent behind the prompt."""
        return (
            "\n\nWhen the work is done, let your last message be one JSON value and nothing else, no words around it "
            f"and no code fence. It has to fit this JSON schema:\n\n{self._text}"
        )

    def check(self, answer: str) -> Checked:
        """Return the value of an answer; one in a code fence counts as if it stood alone."""
        fenced = _FENCE.findall(answer)
        try:
            value = msgspec.json.decode((fenced[-1] if fenced else answer).strip())
        except (msgspec.DecodeError, UnicodeEncodeError):
            return Checked(None, "the last message is no JSON value alone")
        mistakes = self._mistakes(value)
        return Checked(value, "; ".join(mistakes))

    @staticmethod
    def again(complaint: str) -> str:
        """Return the prompt that asks once more."""
        return f"That does not fit the JSON schema: {complaint}. Answer with the corrected JSON value and nothing else."


def read_output_schema(file: str) -> OutputSchema:
    """Read a schema. Raise `CommandError` for a file that cannot be read or holds none. Blocks: reads the file."""
    try:
        from jsonschema import SchemaError  # type: ignore[import-untyped]
        from jsonschema.validators import validator_for  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        raise CommandError(
            f"--output-schema needs jsonschema, which is not installed: {how_to_install('agent')}"
        ) from None
    try:
        data = read_regular(file, SCHEMA_BYTES + 1)
        schema = msgspec.json.decode(data[: SCHEMA_BYTES + 1])
    except OSError as error:
        raise CommandError(f"--output-schema {file}: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise CommandError(f"--output-schema {file}: this is no JSON: {error}") from None
    if len(data) > SCHEMA_BYTES or not isinstance(schema, dict | bool):
        raise CommandError(f"--output-schema {file}: a schema is a JSON object of at most {SCHEMA_BYTES // 1024} KiB")
    kind = validator_for(schema)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise CommandError(f"--output-schema {file}: this is no JSON schema: {error.message}") from None
    return OutputSchema(json.dumps(schema, ensure_ascii=False, indent=1), _checker(kind(schema)))


def _checker(validator: Any) -> "Callable[[Any], list[str]]":
    from referencing.exceptions import Unresolvable

    def mistakes(value: Any) -> list[str]:
        found: list[str] = []
        try:
            for error in validator.iter_errors(value):
                found.append(f"{error.json_path}: {error.message}"[:_MISTAKE_CHARACTERS])
                if len(found) == _MISTAKES:
                    break
        except Unresolvable as error:
            raise CommandError(f"--output-schema: {error} is not in the schema, and nothing is fetched") from None
        return found

    return mistakes
