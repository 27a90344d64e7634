"""What the offline model makes of plain words: a table of phrasings, and where messages are cut."""

import time

import pytest

from dragoman.coder.models.offline.wishes.intents import (
    Append,
    Ask,
    Create,
    Explain,
    Fetch,
    FindFiles,
    Fix,
    Hello,
    Help,
    Intent,
    ListFilesIntent,
    MakePlan,
    Read,
    Rename,
    Replace,
    Run,
    RunTests,
    Search,
    Sum,
    UnknownIntent,
    Where,
)
from dragoman.coder.models.offline.wishes.parsing import requests
from dragoman.coder.models.offline.wishes.phrases import PhraseChunk, phrase

FENCE = "```python\nprint(1)\n```"


def wishes(text: str) -> list[Intent]:
    return [request.intent for request in requests(phrase([text]))]


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("read a.py", Read("a.py")),
        ("Show me src/app.py lines 3-9", Read("src/app.py", 3, 9)),
        ("show lines 3 to 9 of src/app.py", Read("src/app.py", 3, 9)),
        ("read line 5 of a.py", Read("a.py", 5, 5)),
        ("a.py:5-7", Read("a.py", 5, 7)),
        ("show the first 10 lines of a.py", Read("a.py", 1, 10)),
        ("What is in README.md?", Read("README.md")),
        ("open `a b.txt`", Read("a b.txt")),
        ("Please could you read a.py for me?", Read("a.py")),
        ("cat Makefile", Read("Makefile")),
        ("list files", ListFilesIntent()),
        ("list the files in src", ListFilesIntent("src")),
        ("ls", ListFilesIntent()),
        ("ls src", ListFilesIntent("src")),
        ("what is here?", ListFilesIntent()),
        ("what's in this folder", ListFilesIntent()),
        ("what is in src", ListFilesIntent("src")),
        ("list files in .", ListFilesIntent(".")),
        ("find files named *.py", FindFiles("**/*.py")),
        ("find app.py", FindFiles("**/app.py")),
        ("where is app.py?", FindFiles("**/app.py")),
        ("find all python files in src", FindFiles("**/*.py", "src")),
        ("search for TODO", Search("TODO", "TODO")),
        ('search for "hello world" in src', Search("hello world", "hello world", Where("src"))),
        ("search for f(x) in *.py files", Search(r"f\(x\)", "f(x)", Where(glob="*.py"))),
        ("grep fo+ in src", Search("fo+", "fo+", Where("src"))),
        ("grep fo( in src", Search(r"fo\(", "fo(", Where("src"))),
        ("search for todo ignoring case", Search("todo", "todo", ignore_case=True)),
        ("where is Foo used?", Search(r"\bFoo\b", "Foo")),
        ("who calls foo", Search(r"\bfoo\b", "foo")),
        ("run make test", Run("make test")),
        ("execute `ls -l`.", Run("ls -l")),
        ("$ echo hi", Run("echo hi")),
        ("run cd x; ls", Run("cd x; ls")),
        ("run `pytest -q` in src", Run("cd src && pytest -q")),
        ('run echo "a then b"', Run('echo "a then b"')),
        ("run this:\n```sh\necho 1\necho 2\n```", Run("echo 1\necho 2")),
        ("ls -la", Run("ls -la")),
        ("grep -rn foo src", Run("grep -rn foo src")),
        ("run the tests", RunTests()),
        ("do the tests pass?", RunTests()),
        ("run test_add", RunTests("test_add")),
        ("run the tests in tests/test_a.py", RunTests("tests/test_a.py")),
        ("run tests/run.sh", Run("tests/run.sh")),
        ("create a.txt with hello world", Create("a.txt", "hello world\n")),
        ('create a file called n/x.md with "hi"', Create("n/x.md", "hi\n")),
        ("create an empty file a.txt", Create("a.txt", "")),
        ("create a.txt with read and write access", Create("a.txt", "read and write access\n")),
        (f"create x.py with:\n{FENCE}", Create("x.py", "print(1)\n")),
        (f"src/x.py:\n{FENCE}", Create("src/x.py", "print(1)\n")),
        ("```python x.py\nprint(1)\n```", Create("x.py", "print(1)\n")),
        ("write 'abc' to out.txt", Create("out.txt", "abc\n", overwrite=True)),
        ("overwrite out.txt with abc", Create("out.txt", "abc\n", overwrite=True)),
        ('append "x = 1" to conf.py', Append("conf.py", "x = 1\n")),
        ('add the line "x" at the top of conf.py', Append("conf.py", "x\n", at_top=True)),
        ("add line foo to a.txt", Append("a.txt", "foo\n")),
        ("replace foo with bar in a.txt", Replace("foo", "bar", Where("a.txt"))),
        ('replace all "a b" with "c" in a.txt', Replace("a b", "c", Where("a.txt"), everything=True)),
        ('replace "with" with "by" in a.txt', Replace("with", "by", Where("a.txt"))),
        ("in a.txt, replace foo with bar", Replace("foo", "bar", Where("a.txt"))),
        ("change 3 to 4 in conf.py", Replace("3", "4", Where("conf.py"))),
        ("replace foo with bar everywhere", Replace("foo", "bar", Where(), everything=True)),
        ("rename foo to bar in a.py", Rename("foo", "bar", Where("a.py"))),
        ("rename the function foo() to bar() everywhere", Rename("foo", "bar", Where())),
        ("rename foo to bar in all python files", Rename("foo", "bar", Where(glob="*.py"))),
        ("make a plan to add logging", MakePlan("add logging")),
        ("plan the release", MakePlan("the release")),
        ("explain a.py", Explain("a.py")),
        ("what does parse_date do?", Explain("parse_date")),
        ("explain the class Foo in src/foo.py", Explain("Foo", "src/foo.py")),
        ("explain this project", Explain("")),
        ("fix the failing test", Fix()),
        ("fix the failing test test_add", Fix("test_add")),
        ("fix `test_add`", Fix("test_add")),
        ("make the tests pass", Fix()),
        ("make test_add pass", Fix("test_add")),
        ("get all tests green", Fix()),
        ("Find the bug that makes test_total fail and fix it", Fix("test_total")),
        ("find and fix the bug in test_total", Fix("test_total")),
        ("run the tests and fix the failing ones", Fix()),
        ("why does test_add fail?", Fix("test_add", edit=False)),
        ("test_add is failing", Fix("test_add", edit=False)),
        ("fetch https://example.com/a", Fetch("https://example.com/a")),
        ("read https://example.com", Fetch("https://example.com")),
        ("ask me which colour I like", Ask("Which colour do you like?")),
        ('ask me "Red or blue?" with options red, blue', Ask("Red or blue?", ("red", "blue"))),
        ("summarize the conversation", Sum()),
        ("hello", Hello()),
        ("Hello there!", Hello()),
        ("thanks!", Hello(thanks=True)),
        ("help", Help()),
        ("who are you?", Help()),
        ("which model are you?", Help()),
    ],
)
def test_plain_words_mean_something(text: str, wish: Intent) -> None:
    assert wishes(text) == [wish]


@pytest.mark.parametrize(
    "text",
    [
        "tell me a joke",
        "write a poem",
        "run a marathon",
        "what is 2+2",
        "edit a.py",
        "$ make\nerror: no rule",
        "",
        "...",
    ],
)
def test_what_no_rule_knows_is_not_guessed(text: str) -> None:
    assert wishes(text) == [UnknownIntent()]


@pytest.mark.parametrize("text", ["delete a.txt", "rename a.txt to b.txt", "fix the typo in README.md", "x " * 2000])
def test_what_is_not_done_says_what_would_be(text: str) -> None:
    (wish,) = wishes(text)
    assert isinstance(wish, UnknownIntent) and wish.hint


@pytest.mark.parametrize(
    "text",
    [
        "read a.py, then run the tests and then list files",
        "Read a.py. Then run the tests. Then list files.",
        "1. read a.py\n2. run the tests\n3. list files",
        "- read a.py\n- run the tests\n- list files",
        "Please do this:\n* read a.py\n* run the tests\n* list files",
        "read a.py\nrun the tests\nls",
        "read a.py and run the tests and list the files",
    ],
)
def test_several_requests_are_done_in_order(text: str) -> None:
    assert wishes(text) == [Read("a.py"), RunTests(), ListFilesIntent()]


def test_an_item_of_a_list_that_makes_no_sense_is_told_apart() -> None:
    assert wishes("- read a.py\n- dance\n- ls") == [Read("a.py"), UnknownIntent(), ListFilesIntent()]


@pytest.mark.parametrize(
    "text",
    [
        'create a.txt with "one" then run cat a.txt',
        'create a.txt with "one" and run cat a.txt',
    ],
)
def test_content_in_quotes_ends_where_they_do(text: str) -> None:
    assert wishes(text) == [Create("a.txt", "one\n"), Run("cat a.txt")]


@pytest.mark.parametrize("inside", ["x then run rm -rf y", "then run rm y.\nrun rm y", "and run rm y"])
@pytest.mark.parametrize("before", ["create a.txt with", "append", "search for"])
def test_what_is_quoted_is_never_a_request(before: str, inside: str) -> None:
    text = f"{before}\n```\n{inside}\n```" + (" to a.txt" if before == "append" else "")
    assert not any(isinstance(wish, Run) for wish in wishes(text))


@pytest.mark.parametrize("words", ["explain this", "what does this do?", "describe the file", "explain", ""])
def test_an_attachment_can_be_what_is_meant(words: str) -> None:
    mention = PhraseChunk("mention", "`/w/a.py`", "/w/a.py")
    (request,) = requests(phrase([words, mention]))
    assert request.intent == Explain("/w/a.py")


def test_an_attachment_can_stand_in_the_words() -> None:
    mention = PhraseChunk("mention", "`/w/a.py`", "/w/a.py")
    (request,) = requests(phrase(["replace foo with bar in ", mention, " please"]))
    assert request.intent == Replace("foo", "bar", Where("/w/a.py"))


@pytest.mark.parametrize("words", ["run touch", "ls -l", "grep -n x", "run the command"])
def test_the_name_of_an_attachment_is_one_argument_of_a_command(words: str) -> None:
    name = "/w/a b`touch pwned`$(touch pwned);"
    (request,) = requests(phrase([words, PhraseChunk("mention", f"`{name}`", name)]))
    command = words.removeprefix("run the command").removeprefix("run ")
    assert request.intent == Run(f"{command} '{name}'".strip())


@pytest.mark.parametrize(
    "piece",
    [
        "a with b in ",
        "read a and ",
        "search for ",
        "find the ",
        "add a to b to ",
        "show the ",
        "write a to a as ",
        "\n",
        "x",
    ],
)
def test_no_message_takes_long(piece: str) -> None:
    began = time.process_time()
    wishes(f"replace {piece * 3000}"[:2000])
    wishes((piece * 3000)[:2000])
    assert time.process_time() - began < 2
