"""Which commands run without a question, which are asked about, and which never run."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support import whole_agent
from tests.support.files import snapshot
from tests.support.needs import need
from tests.support.scripted_turns import RecordingModel, apart, bash, call
from tests.support.whole_agent import User, ends, events_of, whole


async def asked_for(folder: Path, *commands: str, mode: str = "ask", first: str = "") -> list[str]:
    """The commands that were asked for, of those that the user rejects; one before them is agreed to for ever."""
    user = User(*(["allow_always"] if first else []), "reject_once")
    found: list[str] = []
    # In parts: no user is asked twenty times in one turn.
    for at in range(0, len(commands), 10):
        part = commands[at : at + 10]
        model = RecordingModel(apart(map(bash, ([first] if first else []) + list(part))))
        async with whole(folder, model.make, user=user, mode=mode) as (_, session):
            await events_of(session)
        asked = [question.subject.tool_call.raw_input["command"] for question in user.asked]  # type: ignore[union-attr,index]
        found += [command for command in asked if command != first]
        user = User(*(["allow_always"] if first else []), "reject_once")
    return found


MORE_THAN_READING = [
    "find . -exec touch x ';'",
    "find a -delete",
    "find . -fprintf x a",
    "find . -ok touch x ';'",
    "sed -n 'w x' a",
    "sed 's/a/touch x/e' a",
    "sed -i s/a/b/ a",
    "rg --pre touch x",
    "rg --hostname-bin touch x",
    "git --upload-pack=touch status",
    "git -c core.pager=touch status",
    "git diff --ext-diff",
    "git log --output=x",
    "git diff --output x",
    "git grep -Otouch x",
    "file -m magic a",
    "file -C -m magic",
    "man -P touch ls",
    "tar --to-command=touch -xf a",
    "tar -cf x a",
    "awk 'BEGIN { system(\"touch x\") }'",
    "ls | xargs touch",
    "env touch x",
    "nice touch x",
    "timeout 1 touch x",
    "watch -n1 touch x",
    "setsid touch x",
    "sudo touch x",
    "busybox touch x",
    "sort -o x a",
    "sort --compress-program=touch a",
    "tree -o x",
    "date -s tomorrow",
    "uniq a x",
    "diff --to-file=x a",
    'python3 -c \'open("x", "w")\'',
]


@pytest.mark.requirement("H1")
async def test_no_command_that_can_do_more_than_read_runs_without_a_question(tmp_path: Path) -> None:
    """In the mode that runs what only looks."""
    (tmp_path / "a").write_text("a\n")
    before = snapshot(tmp_path)
    assert await asked_for(tmp_path, *MORE_THAN_READING) == MORE_THAN_READING
    assert snapshot(tmp_path) == before


@pytest.mark.requirement("H1")
@pytest.mark.parametrize(
    "name", ["find .. -name a", "sed -n 1p ../a", "git status ..", "sort ../a", "ls ..", "file ../a"]
)
async def test_always_for_a_plain_form_is_no_yes_to_the_others(tmp_path: Path, name: str) -> None:
    """Under an allow rule for the bare name, which comes from an answer about a path outside."""
    (tmp_path / "a").write_text("a\n")
    program = name.split(maxsplit=1)[0]
    others = [command for command in MORE_THAN_READING if command.split()[0] == program]
    others += [f"{name}; touch x", f"{name} $(touch x)", f"{name} > x"]
    assert await asked_for(tmp_path, *others, mode="ask", first=name) == others
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


UNKNOWABLE = [
    "cat $(echo a)",
    "cat `echo a`",
    "cat <(touch x)",
    "cat <<END\n$(touch x)\nEND",
    "cat ${x@P}",
    "cat ${x:-a}",
    "eval cat a",
    "alias ls='touch x'; ls",
    "ls() { touch x; }; ls",
    "trap 'touch x' EXIT; ls",
    "PROMPT_COMMAND='touch x' ls",
    "cat a; . ./a",
    "source a",
    "exec touch x",
    "if true; then touch x; fi",
    "(touch x)",
    "[[ -v 'a[$(touch x)]' ]]",
    "test -v 'a[$(touch x)]'",
    "printf -v x y",
    "cat $'a'",
]


@pytest.mark.requirement("H2")
async def test_what_the_text_does_not_tell_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")
    assert await asked_for(tmp_path, *UNKNOWABLE) == UNKNOWABLE
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.requirement("H3")
async def test_a_redirect_is_a_write_or_a_read(tmp_path: Path) -> None:
    """To the inside, the outside and what is protected."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "a").write_text("a\n")
    asked = [
        *(f"cat a {arrow} x" for arrow in (">", ">>", "&>", ">|", "2>", "1>", "&>>", ">&")),
        "cat a >&x",
        "cat a 3<> x",
        "cat a > .git/config",
        f"cat a > {tmp_path}/x",
        "cat < /etc/passwd",
        f"cat < {work}/../../x",
    ]
    quiet = ["cat < a", "cat a 2>&1", "cat a 2>/dev/null", "cat a >&2"]
    assert await asked_for(work, *asked, *quiet) == asked
    assert [path.name for path in work.iterdir()] == ["a"]


@pytest.mark.requirement("H4")
async def test_a_long_chain_is_asked_for_and_a_never_holds_in_it(tmp_path: Path) -> None:
    """51 and 10,000 commands, 10,001 bytes; what cannot be read at all is refused."""
    chain = ["true; " * 50 + "true", "true; " * 9_999 + "true", "echo " + "x" * 9_996]
    assert await asked_for(tmp_path, *chain) == chain
    hidden = ["true; " * 60 + "touch b", "true; " * 9_999 + "touch b", "echo " + "x" * 1_000_000 + "; touch b"]
    user = User("reject_always", "allow_once")
    model = RecordingModel(apart(map(bash, ["touch b", *hidden])))
    async with whole(tmp_path, model.make, user=user) as (_, session):
        await events_of(session)
    never = "Permission denied. The user has said never to this, for the whole session."
    unread = "Permission denied. It cannot be undone: It cannot be checked: it is longer than a command line can be."
    assert (len(user.asked), model.results) == (1, ["Permission denied. The user said no.", never, never, unread])
    assert list(tmp_path.iterdir()) == []


ODD = [
    "ls\rtouch x",
    "ls\x0btouch x",
    "ls\u00a0-l",
    "ls\u2028touch x",
    "ls \u202ex",
    "r''m x",
    'r""m x',
    "\\rm x",
    "l\\\ns; touch x",
    "сat a",  # a Cyrillic letter
    "ls\x1b[2K",
    "ls \u200b",
]


@pytest.mark.requirement("H5")
async def test_what_does_not_show_is_asked_for_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")
    assert await asked_for(tmp_path, *ODD) == ODD
    assert await asked_for(tmp_path, "ls\0touch x") == []  # refused without a question
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.requirement("H5")
@pytest.mark.parametrize("command", ["echo 'a  b' \"c\" d\\ e $X", "printf '%s|' a 'b c' $X; echo", "echo x\\\ny$X"])
async def test_what_is_displayed_is_what_runs(tmp_path: Path, command: str) -> None:
    """The title, given to a shell, prints what the call printed."""
    user = User("allow_once")
    model = RecordingModel(apart([bash(command)]))
    async with whole(tmp_path, model.make, user=user) as (_, session):
        await events_of(session)
    process = await asyncio.create_subprocess_exec("bash", "-c", user.asked[0].title, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert model.results == [output.decode()]


@pytest.mark.requirement("H6")
async def test_a_never_holds_under_every_name_and_wrapper(tmp_path: Path) -> None:
    (tmp_path / "t").symlink_to("/usr/bin/touch")
    forms = [
        "/usr/bin/touch b",
        "env touch b",
        "sh -c 'touch b'",
        "bash -c \"sh -c 'touch b'\"",
        "X=1 touch b",
        "command touch b",
        "timeout 5 touch b",
        "nice -n 5 touch b",
        "true && touch b",
        "t''ouch b",
        "echo $(touch b)",
        "find . -exec touch b ';'",
        "echo b | xargs touch",
        "find . -name b -exec touch {} +",
    ]
    user = User("reject_always", "allow_once")
    model = RecordingModel(apart(map(bash, ["touch b", *forms])))
    async with whole(tmp_path, model.make, user=user) as (_, session):
        await events_of(session)
    assert (len(user.asked), [path.name for path in tmp_path.iterdir()]) == (1, ["t"])


@pytest.mark.requirement("H6")
@pytest.mark.parametrize("mode", ["workspace-write", "ask"])
async def test_a_program_of_the_workspace_does_not_pass_for_one_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Though the user's PATH begins with it."""
    need("bwrap")
    work = tmp_path / "work"
    (work / "bin").mkdir(parents=True)
    for name in ("ls", "git", "rg", "cat"):
        program = work / "bin" / name
        program.write_text(f"#!/bin/sh\necho hijacked\ntouch {tmp_path}/ran {work}/ran\n")
        program.chmod(0o755)
    path = f"{work / 'bin'}:.:{whole_agent.ENVIRONMENT['PATH']}"
    monkeypatch.setitem(whole_agent.ENVIRONMENT, "PATH", path)
    user = User("allow_always")
    commands = [bash("ls"), bash("ls bin"), bash("cat bin/ls | wc -l"), call("grep", pattern="nothing")]
    model = RecordingModel(apart(commands))
    async with whole(work, model.make, user=user, mode=mode) as (_, session):
        await events_of(session)
    # What the user has just said yes to may be theirs; what runs on the strength of a rule or a mode may not.
    assert not any("hijacked" in result for result in model.results)
    assert user.asked == []


@pytest.mark.requirement("H7")
async def test_a_name_that_begins_with_a_dash_is_a_name(tmp_path: Path) -> None:
    """For every tool that may hand it to a program."""
    names = ["-rf", "--help", "--pre=touch", "-e", "--"]
    for name in names:
        (tmp_path / name).write_text("needle\n")
    steps = [call("grep", pattern="needle", path=name) for name in names]
    steps += [call("grep", pattern=pattern) for pattern in ("-v", "--pre=touch x", "--files", "-f/etc/passwd")]
    steps += [call("grep", pattern="needle", glob="--pre=touch"), call("glob", pattern="--help")]
    steps += [call("read_file", path=name) for name in names]
    model = RecordingModel(apart(steps))
    async with whole(tmp_path, model.make, mode="read-only") as (_, session):
        await events_of(session)
    assert [result.endswith("needle") for result in model.results[:5]] == [True] * 5
    assert model.results[5:9] == ["Nothing matches."] * 4
    assert model.results[-5:] == ["1\tneedle"] * 5
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


@pytest.mark.requirement("H8")
async def test_no_command_waits_for_a_keyboard(tmp_path: Path) -> None:
    """No terminal, no input, no pager, no editor."""
    (tmp_path / "a").write_text("x")
    commands = [
        "cat /dev/tty",
        "read -s -p 'Password: ' x < /dev/tty",
        "read x",
        "cat",
        "python3 -c 'import getpass; getpass.getpass()'",
        "git commit --allow-empty -m x --author=x",
        "git -c core.askPass= ls-remote https://localhost:1/x",
        "less a",
        "ssh -o StrictHostKeyChecking=ask localhost -p 1",
        "su nobody -c true",
    ]
    # An editor that does not give up by itself meets its deadline.
    model = RecordingModel(apart([*(bash(command, timeout=50) for command in commands), bash("vi a", timeout=1)]))
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        events = await events_of(session)
    assert len(ends(events)) == len(commands) + 1
    waited = [command for command, result in zip(commands, model.results, strict=False) if "stopped after" in result]
    assert waited == []


UNRECOVERABLE = [
    "rm -rf /",
    "rm -rf ~",
    "rm -rf $HOME",
    'rm -rf "$HOME"/',
    "rm -rf .",
    "rm -rf ..",
    "rm -rf *",
    "rm -rf $(echo /)",
    "rm -rf `pwd`/../..",
    "rm -rf ${X}/",
    "rm -r -f --no-preserve-root /",
    "env rm -rf /",
    "sh -c 'rm -rf /'",
    "r''m -rf /",
    "true && rm -rf / || true",
    "find / -delete",
    "echo / | xargs rm -rf",
    ":(){ :|:& };:",
    "mkfs.ext4 /dev/sda1",
    "dd if=/dev/zero of=/dev/sda",
    "cat a > /dev/sda",
    "chmod -R 000 /",
    "shutdown now",
    "kill -9 -1",
]


@pytest.mark.requirement("H9")
@pytest.mark.parametrize("mode", ["full-access", "ask"])
async def test_what_cannot_be_undone_is_refused_in_every_mode_and_after_every_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """If a guard failed here, a harmless program of that name would run, and tell."""
    stubs, work = tmp_path / "stubs", tmp_path / "work"
    stubs.mkdir()
    work.mkdir()
    for name in ("rm", "find", "mkfs.ext4", "dd", "cat", "chmod", "shutdown", "kill", "xargs", "env", "sh"):
        stub = stubs / name
        stub.write_text(f"#!/bin/bash\necho {name} >> {tmp_path}/ran\n")
        stub.chmod(0o755)
    monkeypatch.setitem(whole_agent.ENVIRONMENT, "PATH", str(stubs))
    monkeypatch.setitem(whole_agent.ENVIRONMENT, "HOME", str(work))
    user = User("allow_once")
    safe: list[Any] = [bash(command) for command in UNRECOVERABLE]
    model = RecordingModel(apart(safe))
    async with whole(work, model.make, user=user, mode=mode) as (_, session):
        await events_of(session)
    assert all(result.startswith("Permission denied. It cannot be undone: ") for result in model.results)
    assert len(model.results) == len(UNRECOVERABLE)
    assert (user.asked, (tmp_path / "ran").exists()) == ([], False)
