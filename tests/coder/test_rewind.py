"""Rewinding a session of the coding agent: files and conversation, by the wire, with real git and a real store."""

import os
import shlex
import stat
from pathlib import Path

import pytest

from dragoman.errors import RequestFailed
from dragoman.host.shadow_git import ShadowGit
from dragoman.host.text import visible_line
from dragoman.vocabulary.content import text_of
from dragoman.vocabulary.events import AgentMessage, ToolCallUpdate
from dragoman.vocabulary.requests import DeleteSession, RewindSession
from tests.coder.test_hooks import notices
from tests.support.git_repository import git, program, repository, trapped_submodule
from tests.support.rewind_desk import desk, tree
from tests.support.scripted_turns import bash, call
from tests.support.waiting import until
from tests.support.whole_agent import User, events_of

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("RW1")
async def test_what_tools_and_commands_have_changed_is_as_before_the_prompt(tmp_path: Path) -> None:
    async with desk(
        tmp_path,
        [call("write_file", path="new.txt", content="mine\n"), {"say": "one"}],
        [bash("echo two > file; mkdir -p a/b; echo deep > a/b/c; chmod +x new.txt; ln -s file link"), {"say": "two"}],
        [bash("rm file; rm -r a"), {"say": "three"}],
    ) as it:
        states = [tree(it.folder)]
        for words in ("first", "second", "third"):
            await it.say(words)
            states.append(tree(it.folder))
        done = await it.rewind(scope="files")
        assert (tree(it.folder), done.applied, done.number) == (states[2], True, 3)
        assert it.names(done) == {("file", "restore", ""), ("a/b/c", "restore", "")}
        await it.rewind(scope="files", undo=True)
        assert tree(it.folder) == states[3]
        await it.rewind((await it.ids())[0], scope="files")
        assert tree(it.folder) == states[0]
        assert git(it.folder, "status", "--porcelain") == ""


@pytest.mark.requirement("RW8")
async def test_the_command_lists_the_prompts_with_their_numbers(tmp_path: Path) -> None:
    async with desk(tmp_path, *([{"say": word}] for word in ("uno", "dos"))) as it:
        await it.say("first", "second\nand more")
        listed = (await it.conversation.prompt("/rewind list").read()).text
        assert listed.splitlines()[-2:] == ["1. first", "2. second and more"]
        assert await it.shown() == ["first", "uno", "second\nand more", "dos", "/rewind list", listed.strip()]


@pytest.mark.requirement("RW2")
async def test_the_conversation_is_as_before_the_prompt_for_the_model_and_for_who_loads_it(tmp_path: Path) -> None:
    async with desk(tmp_path, *([{"say": word}] for word in ("uno", "dos", "tres", "cuatro"))) as it:
        await it.say("one", "two", "three")
        done = await it.rewind((await it.ids())[1], scope="conversation")
        assert (done.prompts, done.number) == (2, 2)
        assert await it.shown() == ["one", "uno"]
        await it.say("other")
        assert it.known() == ["one", "other"]
        assert await it.shown() == ["one", "uno", "other", "cuatro"]


@pytest.mark.requirement("RW4")
async def test_a_rewind_of_the_conversation_can_be_undone_until_it_goes_on(tmp_path: Path) -> None:
    async with desk(tmp_path, *([{"say": word}] for word in ("uno", "dos", "tres"))) as it:
        await it.say("one", "two")
        await it.rewind(scope="conversation")
        await it.rewind(scope="conversation", undo=True)
        assert await it.shown() == ["one", "uno", "two", "dos"]
        await it.rewind(scope="conversation")
        await it.say("other")
        with pytest.raises(RequestFailed, match="has gone on since"):
            await it.rewind(scope="conversation", undo=True)
        assert await it.shown() == ["one", "uno", "other", "tres"]


@pytest.mark.requirement("RW3")
async def test_what_others_have_changed_since_is_shown_and_left_alone(tmp_path: Path) -> None:
    async with desk(tmp_path, [bash("echo mine > file; echo mine > other"), {"say": "done"}]) as it:
        await it.say("write")
        (it.folder / "file").write_text("the user's\n")
        shown = await it.rewind(scope="files", preview=True)
        assert it.names(shown) == {("file", "change", "changed since"), ("other", "delete", "")}
        assert not shown.applied and tree(it.folder)["other"] == "- mine\n"
        await it.rewind(scope="files")
        assert tree(it.folder) == {"file": "- the user's\n"}


@pytest.mark.requirement("RW4")
async def test_a_preview_shows_a_diff_of_what_would_happen(tmp_path: Path) -> None:
    async with desk(tmp_path, [bash("echo mine > file"), {"say": "done"}]) as it:
        await it.say("write")
        shown = await it.rewind(preview=True)
        path = it.folder / "file"
        assert [file.diff for file in shown.files] == [f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n-mine\n+one\n"]
        assert tree(it.folder) == {"file": "- mine\n"}


@pytest.mark.requirement("RW1")
async def test_what_was_dirty_and_untracked_before_comes_back(tmp_path: Path) -> None:
    folder = repository(tmp_path / "project")
    (folder / "file").write_text("not committed\n")
    (folder / "draft").write_text("never added\n")
    async with desk(tmp_path, [bash("echo x > file; rm draft"), {"say": "done"}], folder=folder) as it:
        before = tree(folder)
        await it.say("break it")
        await it.rewind(scope="files")
        assert tree(folder) == before


@pytest.mark.requirement("RW1")
@pytest.mark.parametrize(
    "line",
    [
        "rm file; mkdir file; echo x > file/in",
        "rm -r folder; echo x > folder",
        "mv folder other; ln -s other folder",
        "rm -r folder; ln -s ../outside folder",
        "rm -r folder; ln -s folder folder",
    ],
)
async def test_a_file_a_folder_and_a_link_in_the_place_of_each_other_come_back(tmp_path: Path, line: str) -> None:
    folder = repository(tmp_path / "project")
    (folder / "folder" / "in").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "name").write_text("outside\n")
    for name in ("name", "in/side"):
        (folder / "folder" / name).write_text("inside\n")
    before = tree(folder)
    async with desk(tmp_path, [bash("true"), {"say": "."}], [bash(line), {"say": "."}], folder=folder) as it:
        await it.say("look", "change")
        after = tree(folder)
        assert [file.trouble for file in (await it.rewind(scope="files")).files if file.trouble] == []
        assert tree(folder) == before
        await it.rewind(undo=True)
        assert tree(folder) == after
        assert tree(tmp_path / "outside") == {"name": "- outside\n"}


@pytest.mark.requirement("RW1")
async def test_beyond_every_repository_what_file_tools_wrote_comes_back(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "old").write_text("before\n")
    writes = [call("write_file", path=name, content="after\n") for name in ("old", "new/deep")]
    async with desk(tmp_path, [*writes, {"say": "done"}], folder=folder) as it:
        await it.say("write")
        await it.rewind(scope="files")
        assert tree(folder) == {"old": "- before\n"}
        assert not (folder / "new").exists()


@pytest.mark.requirement("RW1")
async def test_a_rewind_works_after_a_restart(tmp_path: Path) -> None:
    async with desk(tmp_path, [bash("echo mine > file"), {"say": "done"}]) as it:
        await it.say("write")
        session_id = it.conversation.id
    async with desk(tmp_path, [{"say": "."}], folder=it.folder) as other:
        await other.client.load_session(session_id, str(it.folder))
        await other.client.ask(RewindSession(session_id))
        assert tree(it.folder) == {"file": "- one\n"}


@pytest.mark.requirement("RW7")
async def test_a_running_session_is_not_rewound(tmp_path: Path) -> None:
    async with desk(tmp_path, [bash("sleep 30"), {"say": "never"}]) as it:
        turn = it.conversation.prompt("wait")
        async for event in turn:
            if isinstance(event, ToolCallUpdate) and event.status == "in_progress":
                with pytest.raises(RequestFailed, match="busy"):
                    await it.rewind()
                await turn.cancel()


@pytest.mark.requirement("RW5")
async def test_nothing_is_written_in_the_git_folder_of_the_project(tmp_path: Path) -> None:
    folder = repository(tmp_path / "project")
    async with desk(tmp_path, [bash("echo x > file; echo y > new"), {"say": "done"}], folder=folder) as it:
        before = {path: path.stat().st_mtime_ns for path in (folder / ".git").rglob("*")}
        await it.say("write")
        await it.rewind()
        assert {path: path.stat().st_mtime_ns for path in (folder / ".git").rglob("*")} == before


@pytest.mark.requirement("RW1")
async def test_a_cancelled_turn_has_its_checkpoint(tmp_path: Path) -> None:
    async with desk(tmp_path, [bash("echo mine > file; sleep 30"), {"say": "never"}]) as it:
        turn = it.conversation.prompt("wait")
        async for event in turn:
            if isinstance(event, ToolCallUpdate) and event.status == "in_progress":
                await until(lambda: (it.folder / "file").read_text() == "mine\n", "the command has written")
                await turn.cancel()
        (it.folder / "file").write_text("the user's\n")
        shown = await it.rewind(scope="files", preview=True)
        assert it.names(shown) == {("file", "change", "changed since")}


@pytest.mark.requirement("RW3")
async def test_a_submodule_and_a_nested_repository_are_left_alone(tmp_path: Path) -> None:
    folder = repository(tmp_path / "project")
    repository(folder / "inner")
    async with desk(tmp_path, [bash("echo x > inner/file; echo y > file"), {"say": "done"}], folder=folder) as it:
        await it.say("write")
        await it.rewind(scope="files")
        assert tree(folder)["file"] == "- one\n"
        assert tree(folder)["inner/file"] == "- x\n"


@pytest.mark.requirement("RW5")
async def test_files_that_git_converts_come_back_byte_by_byte(tmp_path: Path) -> None:
    folder = repository(tmp_path / "project")
    (folder / ".gitattributes").write_text("*.txt text eol=crlf\n")
    (folder / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "crlf")
    async with desk(tmp_path, [bash("printf 'x' > dos.txt"), {"say": "done"}], folder=folder) as it:
        await it.say("write")
        await it.rewind(scope="files")
        assert (folder / "dos.txt").read_bytes() == b"one\r\ntwo\r\n"


@pytest.mark.requirement("RW1")
async def test_names_that_are_no_text_and_files_that_are_no_text_come_back(tmp_path: Path) -> None:
    folder = repository(tmp_path / "project")
    odd = folder / os.fsdecode(b"b\xffd\nname")
    odd.write_bytes(bytes(range(256)))
    async with desk(tmp_path, [bash("rm b*; ln -sf /nowhere file"), {"say": "done"}], folder=folder) as it:
        await it.say("write")
        assert not odd.exists() and (folder / "file").is_symlink()
        await it.rewind(scope="files")
        assert odd.read_bytes() == bytes(range(256))
        assert (folder / "file").read_text() == "one\n" and not (folder / "file").is_symlink()


@pytest.mark.requirement("RW1")
@pytest.mark.parametrize("name", ["a\rb", "file\r", "a\x85b", "a\u2028b", "a\x1cb", "a\n+++ b"])
async def test_a_name_with_an_end_of_line_is_a_name(tmp_path: Path, name: str) -> None:
    folder = repository(tmp_path / "project\u2028of\x1clines")
    make = call("write_file", path=name, content="x\n")
    remove = bash(f"rm {shlex.quote(name)}; echo y > file")
    async with desk(tmp_path, [make], [remove], folder=folder) as it:
        await it.say("make", "remove")
        made, changed = visible_line(str(folder / name)), visible_line(str(folder / "file"))
        assert {tuple(one.diff.splitlines()[:2]) for one in (await it.rewind(preview=True)).files} == {
            ("--- /dev/null", f"+++ {made}"),
            (f"--- {changed}", f"+++ {changed}"),
        }
        await it.rewind(scope="files")
        assert (folder / name).read_text() == "x\n"
        assert (folder / "file").read_text() == "one\n"


@pytest.mark.requirement("RW5")
async def test_a_program_of_the_repository_is_not_started(tmp_path: Path) -> None:
    folder = repository(tmp_path / "project")
    trap = program(tmp_path / "trap", f"touch {tmp_path}/sprung", "cat")
    for key in ("core.fsmonitor", "filter.x.clean", "filter.x.smudge", "core.pager"):
        git(folder, "config", key, str(trap))
    (folder / ".gitattributes").write_text("* filter=x\n")
    program(folder / ".git" / "hooks" / "post-index-change", f"touch {tmp_path}/sprung")
    async with desk(tmp_path, [bash("echo x > file"), {"say": "done"}], folder=folder) as it:
        await it.say("write")
        await it.rewind(scope="files")
        assert (folder / "file").read_text() == "one\n"
        assert not (tmp_path / "sprung").exists()


@pytest.mark.requirement("RW5")
async def test_a_program_of_a_submodule_is_not_started(tmp_path: Path) -> None:
    folder = repository(tmp_path / "project")
    trapped_submodule(folder, tmp_path / "sprung")
    write = call("write_file", path="file", content="x\n")
    async with desk(tmp_path, [write, {"say": "done"}], folder=folder) as it:
        await it.say("write")
        await it.rewind(scope="files")
        assert (folder / "file").read_text() == "one\n"
    assert not (tmp_path / "sprung").exists()
    git(folder, "status")
    assert (tmp_path / "sprung").exists()  # it is a trap


@pytest.mark.requirement("RW5")
@pytest.mark.parametrize("name", ["info/exclude", f"sharedindex.{'0' * 40}"])
async def test_a_pipe_in_the_git_folder_holds_nothing_up(tmp_path: Path, name: str) -> None:
    folder = repository(tmp_path / "project")
    (folder / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(folder / ".git" / name)
    async with desk(tmp_path, [bash("echo x > file"), {"say": "done"}], folder=folder) as it:
        await it.say("write")
        await it.rewind(scope="files")
        assert (folder / "file").read_text() == "one\n"


@pytest.mark.requirement("RW5")
@pytest.mark.parametrize("name", [".gitignore", "deep/.gitattributes", "deep/.gitignore"])
async def test_a_pipe_that_git_would_read_is_named_and_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("dragoman.host.git_run.PATIENCE", 0.2)
    folder = repository(tmp_path / "project")
    (folder / "deep").mkdir()
    (folder / "deep" / "file").write_text("x\n")
    git(folder, "add", ".")
    os.mkfifo(folder / name)
    async with desk(tmp_path, [bash("echo x > file"), {"say": "done"}], folder=folder) as it:
        said = notices(await events_of(it.conversation))
    assert said == [f"What this turn changes cannot be rewound: git would wait for {name}, which is no file."]


@pytest.mark.requirement("RW5")
async def test_a_mistake_about_what_git_says_ends_no_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def garbled(*words: object) -> list[str]:
        raise ValueError("not enough values to unpack")

    monkeypatch.setattr(ShadowGit, "_compare", garbled)
    async with desk(tmp_path, [bash("echo x > file"), {"say": "done"}]) as it:
        assert notices(await events_of(it.conversation)) == [
            "What this turn changes cannot be rewound: what git says of them is not understood."
        ]
        assert (it.folder / "file").read_text() == "x\n"


@pytest.mark.requirement("RW6")
async def test_what_is_kept_is_for_the_user_alone(tmp_path: Path) -> None:
    async with desk(tmp_path, [bash("echo x > file; echo y > new"), {"say": "done"}]) as it:
        await it.say("write")
        kept = list((tmp_path / "home" / "checkpoints").rglob("*"))
        assert [path for path in kept if stat.S_IMODE(path.stat().st_mode) & 0o077] == []
        assert len(kept) > 5


@pytest.mark.requirement("RW6")
@pytest.mark.parametrize("is_repository", [True, False])
async def test_a_file_for_its_owner_alone_comes_back_as_that(tmp_path: Path, is_repository: bool) -> None:
    folder = tmp_path / "project"
    repository(folder) if is_repository else folder.mkdir()
    for name, rights in (("secret", 0o600), ("tool", 0o700), ("plain", 0o644)):
        (folder / name).write_text("x\n")
        (folder / name).chmod(rights)
    names = ("secret", "tool", "plain")
    reads = [call("read_file", path=name) for name in names]
    writes = [call("write_file", path=name, content="y\n") for name in names]
    script = [*reads, {"say": "."}, *writes, {"say": "."}, bash(f"rm {' '.join(names)}"), {"say": "done"}]
    async with desk(tmp_path, script, folder=folder) as it:
        await it.say("delete")
        assert not any((folder / name).exists() for name in names), it.model.results
        await it.rewind(scope="files")
        assert [stat.S_IMODE((folder / name).stat().st_mode) for name in names] == [0o600, 0o700, 0o644]


@pytest.mark.requirement("RW6")
async def test_with_the_session_its_checkpoints_are_deleted(tmp_path: Path) -> None:
    async with desk(tmp_path, [bash("echo x > file; echo y > new"), {"say": "done"}]) as it:
        await it.say("write")
        await it.client.ask(DeleteSession(it.conversation.id))
        kept = (tmp_path / "home" / "checkpoints").rglob("*")
        assert {path.name for path in kept if path.is_file()} <= {"lock", "cleaned"}


@pytest.mark.requirement("RW6")
async def test_a_fork_can_be_rewound_when_its_source_is_deleted(tmp_path: Path) -> None:
    async with desk(tmp_path, [bash("echo mine > new"), {"say": "done"}], [{"say": "."}]) as it:
        await it.say("write")
        fork = await it.conversation.fork()
        shown = await it.client.ask(RewindSession(fork.id, preview=True))
        await it.client.ask(DeleteSession(it.conversation.id))
        assert [file.trouble for file in shown.files] == [""]
        await it.client.ask(RewindSession(fork.id))
        assert not (it.folder / "new").exists()


@pytest.mark.requirement("RW2")
async def test_a_fork_does_not_bring_back_what_a_rewind_has_taken_out(tmp_path: Path) -> None:
    async with desk(tmp_path, [{"say": "one"}], [{"say": "two"}], [{"say": "three"}]) as it:
        await it.say("first", "second")
        messages = await it.loaded()
        await it.rewind(messages[2][1], scope="conversation")
        for _, id, _ in messages[2:]:
            with pytest.raises(RequestFailed) as refused:
                await it.conversation.fork(message_id=id)
            sentence = "A rewind has taken this message out of the conversation; undo the rewind to fork there"
            assert (refused.value.message, refused.value.data) == (sentence, {"messageId": id, "reason": "rewound"})
        await it.say("third")
        fork = await it.conversation.fork(message_id=messages[1][1])
        it.heard.clear()
        await (await it.client.load_session(fork.id, str(it.folder))).close()
        assert [text_of(one.content or []) for one in it.heard if isinstance(one, AgentMessage)] == ["one"]


@pytest.mark.requirement("RW3")
async def test_two_sessions_of_one_project_see_each_others_work_as_that_of_others(tmp_path: Path) -> None:
    async with desk(tmp_path, [bash("echo a > file"), {"say": "."}], [bash("echo b > file"), {"say": "."}]) as it:
        await it.say("write")
        other = await it.client.new_session(str(it.folder))
        await other.prompt("write").read()
        shown = await it.rewind(preview=True)
        assert it.names(shown) == {("file", "change", "changed since")}


@pytest.mark.requirement("RW1")
async def test_changes_of_a_sandbox_that_were_applied_come_back(tmp_path: Path) -> None:
    steps = [call("sandbox_write_file", path="file", content="mine\n"), {"say": "done"}]
    async with desk(tmp_path, steps, mode="sandbox", user=User("allow_once")) as it:
        await it.say("write")
        assert tree(it.folder) == {"file": "- mine\n"}
        await it.rewind(scope="files")
        assert tree(it.folder) == {"file": "- one\n"}


@pytest.mark.requirement("RW1")
async def test_in_a_folder_that_its_repository_ignores_what_file_tools_wrote_comes_back(tmp_path: Path) -> None:
    folder = repository(tmp_path / "project") / "scratch"
    (folder.parent / ".gitignore").write_text("scratch/\n")
    folder.mkdir()
    async with desk(tmp_path, [call("write_file", path="new", content="x\n"), {"say": "done"}], folder=folder) as it:
        await it.say("write")
        await it.rewind(scope="files")
        assert tree(folder) == {}


@pytest.mark.requirement("RW5")
async def test_before_a_call_that_may_change_files_git_is_not_started(tmp_path: Path) -> None:
    reads = [call("read_file", path="file"), bash("cat file"), {"say": "done"}]
    async with desk(tmp_path, reads) as it:
        await it.say("look")
        assert not (tmp_path / "home" / "checkpoints").exists()


@pytest.mark.requirement("RW3")
async def test_a_command_that_still_runs_is_named(tmp_path: Path) -> None:
    server = bash("echo x > file; sleep 60", background=True)
    async with desk(tmp_path, [server, {"say": "done"}]) as it:
        await it.say("serve")
        await until(lambda: (it.folder / "file").read_text() == "x\n", "the command has written")
        shown = await it.rewind(preview=True)
        assert shown.not_covered and "still runs, and may change files again" in shown.not_covered[0]


@pytest.mark.requirement("RW1")
async def test_what_undo_has_put_back_is_no_work_of_others(tmp_path: Path) -> None:
    writes = [[call("write_file", path="file", content=f"{word}\n"), {"say": word}] for word in ("a", "b")]
    async with desk(tmp_path, *writes) as it:
        await it.say("write a", "write b", "/undo")
        assert tree(it.folder) == {"file": "- a\n"}
        await it.rewind((await it.ids())[0], scope="files")
        assert tree(it.folder) == {"file": "- one\n"}
