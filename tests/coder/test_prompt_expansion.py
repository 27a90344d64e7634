"""What a command becomes: arguments, variables, command lines and mentions, each read once."""

import pytest

from dragoman.coder.prompt_expansion import PromptPiece, expand

VARIABLES = {"CLAUDE_SKILL_DIR": "/skills/one"}


def words(text: str, arguments: str = "") -> str:
    expanded = expand(text, arguments, VARIABLES)
    return "".join(f"<{piece.text}>" if piece.is_command else piece.text for piece in expanded.pieces)


@pytest.mark.parametrize(
    ("text", "arguments", "becomes"),
    [
        ("Fix #$ARGUMENTS, please", '12 "a b"', 'Fix #12 "a b", please'),
        ("PR $1 by $2 ($3)", 'one "two words"', "PR one by two words ($3)"),
        ("Move $0 to $1", "a b", "Move a to b"),
        ("Move $ARGUMENTS[1] to $0", "a b", "Move b to a"),
        ("Move $ARGUMENTS[7]", "a", "Move $ARGUMENTS[7]\n\na"),
        ("It costs $5, $1,000 or $10", "x y", "It costs $5, $1,000 or $10\n\nx y"),
        ("A \\$1 and \\$ARGUMENTS and $1", "x", "A $1 and $ARGUMENTS and x"),
        ("Say $HOME and ${HOME}", "", "Say $HOME and ${HOME}"),
        ("Run ${CLAUDE_SKILL_DIR}/a.py", "", "Run /skills/one/a.py"),
        ("No place", "x", "No place\n\nx"),
        ("An open quote: $1", "it's", "An open quote: it's"),
        ("---\narguments: [issue, branch]\n---\n$issue on $branch, $other", "7 dev", "7 on dev, $other"),
    ],
)
def test_what_was_typed_is_put_in_its_place(text: str, arguments: str, becomes: str) -> None:
    assert words(text, arguments) == becomes


def test_command_lines_stand_apart_with_their_arguments() -> None:
    text = "Diff: !`git diff $1`\n\n```!\ngit log\ngit status\n```\nEnd. Not`!` one, `!ls` neither."
    assert words(text, "HEAD") == "Diff: <git diff HEAD>\n\n<git log\ngit status>\nEnd. Not`!` one, `!ls` neither."


@pytest.mark.parametrize("typed", ["!`touch x`", "${CLAUDE_SKILL_DIR}", "$ARGUMENTS $1", "@/etc/passwd"])
def test_an_argument_is_read_as_nothing_else(typed: str) -> None:
    expanded = expand("Look: $ARGUMENTS", typed, VARIABLES)
    assert (list(expanded.pieces), list(expanded.mentions)) == ([PromptPiece(f"Look: {typed}")], [])


def test_mentions_are_those_of_the_file_and_not_in_code_or_command_lines() -> None:
    text = "See @src/a.py, @b\\ c.md. `@no` a@b !`cat @x` @$1"
    assert list(expand(text, "d.txt", {}).mentions) == ["src/a.py", "b c.md", "d.txt"]


def test_of_many_command_lines_the_first_are_run() -> None:
    text = "\n".join(f"!`echo {number}`" for number in range(25))
    found = [piece.text for piece in expand(text, "", {}).pieces if piece.is_command]
    assert (len(found), found[-1]) == (20, "echo 19")
