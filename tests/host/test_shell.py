"""A command line is read as bash reads it, or not at all."""

import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.host.shell import COMMAND_BYTES, SUB_COMMANDS, Parsed, Redirect, Simple, Unparsed, parse
from dragoman.host.shell_lexer import HOLE
from tests.support.needs import need


def parsed(command: str) -> Parsed:
    result = parse(command)
    assert isinstance(result, Parsed), result
    return result


def only(command: str) -> Simple:
    (simple,) = parsed(command).commands
    return simple


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("ls -la", ("ls", "-la")),
        ("r''m x", ("rm", "x")),
        ("'rm' \"x y\" z\\ w", ("rm", "x y", "z w")),
        ("ec\\\nho a\\\nb", ("echo", "ab")),
        ("echo 'a\\\nb'", ("echo", "a\\\nb")),
        ('echo "a\\"b\\$c\\d"', ("echo", 'a"b$c\\d')),
        ("echo '' \"\"", ("echo", "", "")),
        ("ls # not this; rm x", ("ls",)),
        ("echo a#b", ("echo", "a#b")),
        ("echo 'x$' $ \"y$\"", ("echo", "x$", "$", "y$")),
        ("git log HEAD~3 HEAD@{1}", ("git", "log", "HEAD~3", "HEAD@{1}")),
        ("[ -f x ]", ("[", "-f", "x", "]")),
        ("'if' x", ("if", "x")),
    ],
)
def test_the_words_are_what_bash_would_run(command: str, argv: tuple[str, ...]) -> None:
    assert only(command) == Simple(argv)


def test_pipelines_and_lists_come_apart() -> None:
    result = parsed("a && b || c; d & e | f |& g\n\n h")
    assert [" ".join(simple.argv) for simple in result.commands] == list("abcdefgh")
    assert result.pipelines == ((4, 5, 6, 7),)


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        *(
            ("(a; b)", "a b"),
            ("{ a; b; } | c", "a b c"),
            ("! a", "a"),
            ("if a; then b; elif c; then d; else e; fi", "a b c d e"),
        ),
        *(("for i in 1 $X; do a; b; done", "a b"), ("while a; do b; done", "a b"), ("until a\ndo b\ndone", "a b")),
        *(
            ("case x in a|b) c;; (d) e;& *) esac", "c e"),
            ("f() { a; }; f x", "a"),
            ("f() (a)\nf && f", "a"),
            ("'f'; a", "f a"),
        ),
        *(
            ("a $(b)", "b a"),
            ('a "$(b "$(c)")"', "c b a"),
            ("a `b`", "b a"),
            ("a <(b) >(c)", "b c a"),
            ("X=$(b)", "b "),
        ),
        *(("a <<E\n$(b)\nE\nc", "b a c"), ("a <<'E'\n$(b)\nE\nc", "a c"), ("for i in $(a); do b; done", "a b")),
    ],
)
def test_every_command_of_a_compound_one_is_found(command: str, argv: str) -> None:
    result = parsed(command)
    assert " ".join(" ".join(simple.argv[:1]) for simple in result.commands) == argv
    assert result.is_plain == (command == "'f'; a")


def test_a_substitution_leaves_a_hole_in_a_word() -> None:
    (_, simple) = parsed("git commit -m \"a $(cat <<'E'\nit's $X\nE\n)\"").commands
    assert simple == Simple(("git", "commit", "-m", f"a {HOLE}"))
    assert not simple.literal
    assert parsed("a $(b)").commands[1] == Simple(("a", HOLE), expands=frozenset({1}))


@pytest.mark.parametrize("command", ["a $X", 'a "$X"', "a ${X}", "a $1", "a b$?"])
def test_what_a_variable_makes_of_a_word_is_not_known(command: str) -> None:
    simple = only(command)
    assert simple.expands == {1}
    assert HOLE in simple.argv[1]


@pytest.mark.parametrize(
    ("command", "redirect"),
    [
        ("a <<< 'x y'", Redirect("text", "x y")),
        ("a <<< $X", Redirect("text", HOLE, literal=False)),
        ("a <<E\nb\n\nE", Redirect("text", "b\n\n")),
        ("a <<-E\n\tb\n\tE", Redirect("text", "b\n")),
        ("a <<'E'\n$X `\\\nE", Redirect("text", "$X `\\\n")),
        ("a <<E\n\\$X it's\nE", Redirect("text", "$X it's\n")),
        ("a <<E\n$X\nE", Redirect("text", f"{HOLE}\n", literal=False)),
    ],
)
def test_what_a_command_is_fed_is_a_text(command: str, redirect: Redirect) -> None:
    assert only(command) == Simple(("a",), redirects=(redirect,))


def test_the_files_of_a_compound_command_stand_by_themselves() -> None:
    assert parsed("{ a; } >b 2>&1").commands == (Simple(("a",)), Simple((), redirects=(Redirect("write", "b"),)))


@pytest.mark.parametrize(
    ("command", "folders"),
    [
        ("a", ("",)),
        ("cd x && a", ("x", "")),
        ("cd x; cd y; a", ("x/y", "y", "x", "")),
        ("(cd x); a", ("",)),
        ("b $(cd x); a", ("",)),
        ("{ cd x; }; a", ("x", "")),
        ("cd /x && a", ("/x", "")),
        *(
            (f"{goes}; a", ())
            for goes in ("cd", "cd -", "cd $X", "cd x/../y", "pushd x", "popd", "A=1 cd x", "command cd x")
        ),
        ("cd a; cd b; cd c; a", ()),
    ],
)
def test_a_command_may_run_in_the_folders_that_the_line_goes_to(command: str, folders: tuple[str, ...]) -> None:
    assert parsed(command).commands[-1].folders == folders


def test_assignments_stand_before_the_command() -> None:
    assert only("A=1 B='x y' c D=2") == Simple(("c", "D=2"), (("A", "1"), ("B", "x y")))
    assert only("A=1") == Simple((), (("A", "1"),))
    assert only("'A'=1") == Simple(("A=1",))


@pytest.mark.requirement("H3")
@pytest.mark.parametrize(
    ("command", "redirects"),
    [
        ("x > out", [Redirect("write", "out")]),
        ("x>out", [Redirect("write", "out")]),
        ("x >| out", [Redirect("write", "out")]),
        ("x >> out", [Redirect("append", "out")]),
        ("x < in", [Redirect("read", "in")]),
        ("x <> both", [Redirect("write", "both")]),
        ("x &> all", [Redirect("write", "all")]),
        ("x &>> all", [Redirect("append", "all")]),
        ("x >& all", [Redirect("write", "all")]),
        ("x 2> 'a b'", [Redirect("write", "a b")]),
        ("> out x", [Redirect("write", "out")]),
        ("x < /dev/tcp/10.0.0.1/80", [Redirect("read", "/dev/tcp/10.0.0.1/80")]),
        ("x > ~/a*", [Redirect("write", "~/a*", literal=False)]),
        ("x 2>&1 >&3 <&- 3>&2-", []),
    ],
)
def test_redirects_are_reads_and_writes(command: str, redirects: list[Redirect]) -> None:
    assert only(command) == Simple(("x",), redirects=tuple(redirects))


@pytest.mark.parametrize("word", ["*.py", "a?", "[ab]", "{a,b}", "{1..3}", "~", "~/x", "a=~", "x:~/y"])
def test_a_word_that_the_shell_expands_is_marked(word: str) -> None:
    simple = only(f"ls {word} b")
    assert simple == Simple(("ls", word, "b"), expands=frozenset({1}))
    assert not simple.literal


@pytest.mark.parametrize("word", ["'*.py'", "a\\?", '"[ab]"', "'{a,b}'", "'~'", "a~b", "{}", "{a}", "@{1}"])
def test_a_word_that_the_shell_leaves_alone_is_not_marked(word: str) -> None:
    assert only(f"ls {word}").literal


@pytest.mark.requirement("H2")
@pytest.mark.parametrize(
    "command",
    [
        *(
            "echo ${x@P}",
            "echo ${x:-$(ls)}",
            "echo ${!x}",
            "echo $((1))",
            "echo $[1]",
            "$X ls",
            "$(ls) a",
            "`ls`",
            "<(ls)",
        ),
        *("echo $'a'", 'echo $"a"', "eval ls", "'eval' ls", ". ./x", "source x", "trap 'ls' EXIT", "alias l=ls"),
        *("exec ls", "builtin ls", "hash -p /x ls", "function f { ls; }", "a=(1)", "select i in a; do ls; done"),
        *("[[ a ]]", "((1))", "( (1) )((2))", "time ls", "coproc ls", "/bin/l* x", "{ls,x}", "~/x", "declare -n a=b"),
        *("a[0]=1", "{fd}>x ls", "ls >&2x3 3>&x", "CDPATH=/ cd x", "POSIXLY_CORRECT=1; ls", "BASH_ENV=x ls"),
        # Functions: of which it is not known what they are when they are called, or that call themselves.
        *(
            "(f() { ls; }); f",
            "ls && f() { ls; }",
            "f() { ls; } && f",
            "f() { ls; } | cat",
            "f() { ls; } & f",
            "if a; then f() { b; }; fi",
        ),
        *(
            "f() { f; }",
            "f() { ls; }; f() { rm; }",
            "f() { g; }; g() { f; }",
            "ls; ls() { rm; }",
            "cd() { ls; }",
            "if() { ls; }",
        ),
        *(
            "f() { ls; }; unset -f f; f",
            "f() { ls; }; ls | f",
            "f() { ls; }; f | sh",
            "f() { ls; }; ls | (f)",
            "f() if a; then b; fi",
        ),
        # What is done again and again changes where the rest is done, or how often.
        *("for i in a; do cd b; done", "f() { cd b; }; f; f", "while a; do b & done", "for PATH in .; do ls; done"),
        *("for npm_config_x in a; do ls; done", "for ((;;)); do ls; done", "for i; do ls; done"),
        # Here-documents without an end, with an odd one, or in a place that bash itself gets wrong.
        *("a <<E\nb", "a <<E", "a <<$X\nb\n$X", "a <<E\nb\\\nE\nE", "$(a <<E)\nE\n", "a <<E $(b)\nE"),
        *('a "$(b <<E\nE\nc; d)"', "a <(b <<E\nE\nc; d)"),
        # Continued in the middle of what it is.
        *("a >\\\n>b", "a &\\\n& b", "a $\\\n(b)", "(\\\n(1))", "a <\\\n(b)", "a <\\\n<E\nE"),
        # Bash expands this name twice, and so runs it.
        *("a >& '$(b)'", "a >& \\$b"),
    ],
)
def test_what_the_text_does_not_tell_is_unparsed(command: str) -> None:
    assert isinstance(parse(command), Unparsed)


@pytest.mark.parametrize(
    "command",
    [
        *("", " ", "\n", "# x", "; ls", "ls ;; ls", "ls &&", "| ls", "ls | ", "ls & ; ls", "a &&; b", "!", "()", "{ }"),
        *("if a; then b", "if a; fi", "for i in a; done", "while a; done", "case a in b) c", "(a", "{ a", "a; }", "fi"),
        *("$(a", "`a", "a $()", "(a) b", "{ a; } b", "if a; then; fi", "f() ", "f() a", "case a in b c) d;; esac"),
    ],
)
def test_half_a_command_is_unparsed(command: str) -> None:
    assert isinstance(parse(command), Unparsed)


@pytest.mark.parametrize("command", ["echo 'a", 'echo "a', "echo a\\", "ls >", "ls > | x", "ls )"])
def test_a_command_that_is_not_closed_is_unparsed(command: str) -> None:
    assert isinstance(parse(command), Unparsed)


ODD = (
    "\r\v\f\0\x1b\x7f\x85\u00a0\u1680\u2003\u2028\u200b\u200f\u202e\u2066\u3000\ufeff\ud800\ue000"
    "\ufe0f\U000e0100\u3164\u034f\u115f\uffa0\u2800\u00ad\U0001d173"
)


@pytest.mark.requirement("H5")
@pytest.mark.parametrize("character", ODD)
def test_a_character_that_does_not_show_is_unparsed(character: str) -> None:
    for command in (f"ls{character}x", f"echo '{character}'", f"ls # {character}"):
        result = parse(command)
        assert isinstance(result, Unparsed)
        assert character not in result.reason


@pytest.mark.requirement("H4")
def test_long_lines_are_unparsed() -> None:
    assert isinstance(parse("x" * COMMAND_BYTES), Parsed)
    assert isinstance(parse("x" * (COMMAND_BYTES + 1)), Unparsed)
    assert isinstance(parse("é" * (COMMAND_BYTES // 2 + 1)), Unparsed)
    assert len(parsed(";".join(["ls"] * SUB_COMMANDS)).commands) == SUB_COMMANDS
    assert isinstance(parse(";".join(["ls"] * (SUB_COMMANDS + 1))), Unparsed)


PIECES = st.sampled_from(
    [
        *("a", "-b", "é", "=", "#", "~", "%", "^", "!", ",", "..", ".", "/", "*"),
        *("?", "[", "]", "{", "}", ":", "+", "$", "@"),
        *("''", '""', "'x y'", '"x y"', "'\"'", '"\'"', "\\ ", "\\\\", "\\'", '\\"', "\\\n", '"\\$"', '"\\x"'),
        *("'\\\n'", '"$"', "\\*", "'{'", "'$x'", "\\#", "1", "22", "'\n'", '"\\\n"', "-", "_", "X=", "\\~"),
    ]
)
WORDS = st.lists(PIECES, min_size=1, max_size=6).map("".join)
BETWEEN = st.sampled_from([" ", "  ", "\t", " \\\n", "\\\n "])
NAMES = st.sampled_from(["zz", "z'z'", '"z"\\z', "zz\\\n", "z\\z1"])
JOINS = st.sampled_from(
    [";", " ; ", "\n", "&&", " && ", "|", " |\n", "&&\n", "|&", " 2>&1 | ", " >/dev/null;", " # c\n"]
)


@st.composite
def lines(draw: st.DrawFn) -> str:
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        parts.append(draw(NAMES))
        for word in draw(st.lists(WORDS, max_size=4)):
            parts += [draw(BETWEEN), word]
        parts.append(draw(JOINS))
    return "".join(parts[:-1])


# Nothing is found on the PATH, so bash hands every command to this function, which shows it and does nothing. Newlines
# are replaced, because bash writes line by line, and the lines of a pipeline's commands would mix.
HARNESS = r"""
command_not_found_handle() { printf '%s\0' "$#" "${@//$'\n'/$'\1'}" >&9; return 0; }
exec 9>&1 >/dev/null 2>&1
for line in "$@"; do
    eval "$line"
    wait
    printf 'end\0' >&9
done
"""


def seen_by_bash(commands: Sequence[str]) -> list[list[tuple[str, ...]]]:
    """The commands that bash runs for each line, sorted: those of a pipeline run at the same time."""
    done = subprocess.run(
        ["/bin/bash", "--noprofile", "--norc", "-c", HARNESS, "bash", *commands],
        capture_output=True,
        check=False,
        timeout=30,
        cwd="/",
        env={"PATH": "/nowhere", "LC_ALL": "C.UTF-8", "HOME": "/nowhere"},
    )
    found: list[list[tuple[str, ...]]] = [[]]
    fields = iter(done.stdout.decode().split("\0")[:-1])
    for field in fields:
        if field == "end":
            found.append([])
        else:
            found[-1].append(tuple(next(fields).replace("\1", "\n") for _ in range(int(field))))
    return [sorted(line) for line in found[:-1]]


# Each example starts a shell. The profile that searches for long gets more of them.
FEW = max(25, settings().max_examples // 10)


@pytest.mark.requirement("H5")
@settings(max_examples=FEW)
@given(st.lists(lines(), min_size=1, max_size=12))
def test_what_is_parsed_is_what_bash_runs(commands: list[str]) -> None:
    known = [(command, result) for command in commands if isinstance(result := parse(command), Parsed)]
    known = [(command, result) for command, result in known if all(map(_can_be_seen, result.commands))]
    ours = [sorted(simple.argv for simple in result.commands) for _, result in known]
    assert ours == seen_by_bash([command for command, _ in known])


def _can_be_seen(simple: Simple) -> bool:
    """Whether our function is called. A newline may make a command of any word: of a path, a builtin, an assignment."""
    return simple.literal and bool(simple.argv) and simple.argv[0].startswith("z") and "/" not in simple.argv[0]


def test_the_harness_sees_a_difference() -> None:
    assert seen_by_bash(["zz 'a b' c; zy", "zx |zw"]) == [[("zy",), ("zz", "a b", "c")], [("zw",), ("zx",)]]


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_has_a_reason(text: str) -> None:
    result = parse(text)
    assert result.text == text
    assert isinstance(result, Parsed) or result.reason


# -- lines that other shells read as well ----------------------------------------------------------------------------

ELSEWHERE = [
    *("zz a &>/dev/null zz1", "zz a&>/dev/null zz1", "zz >&word zz1", "zz |& zz1", "zz 12>&1 b", "zz 12>/dev/null b"),
    *(
        "zz 1>&2- b",
        "zz {a,b}",
        "zz a{1..3}",
        "zz *",
        "zz ~/a",
        "zz =zz",
        "zz ''=zz",
        "zz [a]",
        "zz a\\ b",
        'zz "a\\b"',
        "zz # b",
    ),
    *("zz a>/dev/null", "zz '1'2>/dev/null", "zz <>/dev/null", "zz >|/dev/null", "zz !a", 'zz "!a"', "zz ^a", "zz $"),
    *("noglob zz", "- zz", "repeat zz", "nocorrect zz"),
]


@pytest.mark.parametrize("line", ELSEWHERE)
def test_a_line_that_another_shell_may_read_in_another_way_is_not_parsed_for_any_shell(line: str) -> None:
    assert isinstance(parse(line), Parsed)
    assert isinstance(parse(line, portable=True), Unparsed)


@pytest.mark.parametrize(
    "line",
    [
        *(
            "git status",
            "git log -5 -- src/a.py",
            "pytest -q -k 'a or b'",
            'git commit -m "a b" ',
            "a && b || c; d & e | f",
        ),
        *(
            "make 2>&1 | tail -5",
            "a 2>/dev/null",
            "a >/dev/null 2>&1",
            "a >> b",
            "a < b",
            "X=1 a",
            "a --b=c",
            "a 'x'y'z'",
        ),
    ],
)
def test_an_ordinary_line_is_the_same_for_any_shell(line: str) -> None:
    assert parse(line, portable=True) == parse(line)


# Functions, because dash has no hook for unknown commands. `9` has one digit: dash knows no others.
FUNCTIONS = r"""
zz() { printf '%s\0' "$#" "$@" >&9; }
zz1() { printf '%s\0' "$(($# + 1000))" "$@" >&9; }
exec 9>&1 >/dev/null 2>&1 </dev/null
for line in "$@"; do
    eval "$line"
    wait
    printf 'end\0' >&9
done
"""
TOKENS = st.sampled_from(
    [
        *("zz", "zz1", "a", "-b", "b=c", "=a", "1", "12", "'x y'", '"x y"', "''", "#c", "{a,b}", "~", "*", "!", "\\ "),
        *("$", "[", "(", "^", "%1", ":", "&>", "|&", ">&", "2>&1", "12>&1", "1>&2", ">", "<", ">>", "/dev/null", "é"),
        *(";", "&&", "||", "|", "&", "\n", "'", '"', "2>", "@", ",", ".."),
    ]
)
GAPS = st.sampled_from([" ", " ", " ", "", "\t"])
ANY_LINES = st.lists(st.tuples(TOKENS, GAPS), min_size=1, max_size=7).map(
    lambda parts: "zz " + "".join(token + gap for token, gap in parts)
)


def seen_by(shell: str, lines: Sequence[str], folder: str) -> list[list[tuple[str, ...]]]:
    """What a shell other than bash hands to the two functions for each line, sorted."""
    done = subprocess.run(
        [shell, "-c", FUNCTIONS, "sh", *lines],
        capture_output=True,
        check=False,
        timeout=60,
        cwd=folder,
        env={"PATH": "/"},
    )
    found: list[list[tuple[str, ...]]] = [[]]
    fields = iter(done.stdout.decode().split("\0")[:-1])
    for field in fields:
        if field == "end":
            found.append([])
        else:
            name, count = ("zz1", int(field) - 1000) if int(field) >= 1000 else ("zz", int(field))
            found[-1].append((name, *(next(fields) for _ in range(count))))
    return [sorted(line) for line in found[:-1]]


def _is_seen_elsewhere(line: Parsed) -> bool:
    named = all(simple.argv[:1] in (("zz",), ("zz1",)) for simple in line.commands)
    runs_all = not re.search(r"&&|\|\|", line.text)  # which of them run depends on how they end
    into_nothing = all(one.target == "/dev/null" for simple in line.commands for one in simple.redirects)
    return named and runs_all and into_nothing and all(not simple.assignments for simple in line.commands)


@pytest.mark.parametrize("shell", ["dash", pytest.param("zsh", marks=pytest.mark.slow)])
@settings(max_examples=FEW, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(ANY_LINES, min_size=20, max_size=60))
def test_what_is_parsed_for_any_shell_is_what_another_shell_runs(shell: str, lines: list[str], tmp_path: Path) -> None:
    program = need(shell)
    known = [(line, found) for line in lines if isinstance(found := parse(line, portable=True), Parsed)]
    known = [(line, found) for line, found in known if _is_seen_elsewhere(found)]
    ours = [sorted(simple.argv for simple in found.commands) for _, found in known]
    assert ours == seen_by(program, [line for line, _ in known], str(tmp_path))


@pytest.mark.parametrize("line", ["zz a &>/dev/null zz1", "zz 12>&1 b"])
def test_dash_reads_some_lines_of_bash_in_another_way(line: str, tmp_path: Path) -> None:
    """What the rule above is for."""
    ours = sorted(simple.argv for simple in parsed(line).commands)
    assert [ours] != seen_by(need("dash"), [line], str(tmp_path))


# -- how long it takes -----------------------------------------------------------------------------------------------

USUAL = (
    "cd src && for i in 1 2; do npm test -- --x='a b' | tee log.txt; done; git commit -m \"$(cat <<'E'\n"
    'fix: it\'s (a) "thing"\nE\n)" && if make -j4 \'b c\'; then echo "done $(git log -1)"; fi; FOO=1 pytest -q tests'
    " -k 'not slow' && (cd docs && make html > /dev/null 2>&1); git push origin main"
)


@pytest.mark.slow
def test_a_line_is_parsed_in_less_than_a_millisecond() -> None:
    names = [simple.argv[0] for simple in parsed(USUAL).commands]
    assert names == ["cd", "npm", "tee", "cat", "git", "make", "git", "echo", "pytest", "cd", "make", "git"]
    times = []
    for _ in range(200):
        start = time.process_time()
        parse(USUAL)
        times.append(time.process_time() - start)
    assert sorted(times)[len(times) // 2] < 0.001


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "a ",
            "''",
            '"a',
            "\\a",
            "$X",
            "{,",
            "$(",
            '"$(',
            "<<E ",
            "( ",
            "a;",
            ">a ",
            "\\\n",
            "#\n",
            "a|",
            "$ ",
            "`",
            "A=1 ",
        ),
        *(
            "if a; then ",
            "f() { a; }\n",
            "a <<E\n$X\nE\n",
            "cd a;",
            "${X}",
            "'\n'",
            "<(a) ",
            "case a in a) ",
            "2>&1 ",
            "~",
        ),
    ],
)
def test_the_longest_line_is_parsed_soon(piece: str) -> None:
    """Usually a hundredth of a second; the square of this length would be a minute."""
    text = ("a " + piece * COMMAND_BYTES)[:COMMAND_BYTES]
    start = time.process_time()
    parse(text)
    assert time.process_time() - start < 0.3
