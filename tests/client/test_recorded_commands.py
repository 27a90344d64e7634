"""A recorded decision names a command as it was judged, shown and run: with its variables, and quoted."""

from dragoman.client.command_lines import BASH, terminal_line
from dragoman.client.decision import title_of
from dragoman.vocabulary.requests import EnvVariable
from dragoman.vocabulary.services import CreateTerminal


def test_variables_and_quotes_are_in_the_record() -> None:
    request = CreateTerminal("s", "rm", ["a b"], [EnvVariable("LD_PRELOAD", "./x.so")])
    assert title_of(request, BASH) == terminal_line(request, BASH) == "LD_PRELOAD=./x.so rm 'a b'"
