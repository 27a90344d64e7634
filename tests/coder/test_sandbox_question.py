"""The question at the end of a sandboxed turn: nothing is agreed to that was not shown."""

import asyncio
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from dragoman.coder import change_review
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AnyEvent, ToolCallContentChunk
from dragoman.vocabulary.services import RequestPermission, ToolCallSubject
from dragoman.vocabulary.tools import ContentItem, Diff, FileChange
from tests.support.needs import need
from tests.support.whole_agent import User, ends, events_of, scripted, whole


class Turn(NamedTuple):
    """A turn in mode sandbox that has ended."""

    folder: Path
    user: User
    events: list[AnyEvent]

    def question(self, at: int = 0) -> tuple[str, list[str], dict[str, tuple[object, object]]]:
        """The title of a question, the lines of its list, and the old and new text of every file by its name."""
        return shown_by(self.user.asked[at])

    @property
    def outcome(self) -> object:
        """How the call ended that carries the question."""
        return ends(self.events)[-1]

    @property
    def words(self) -> str:
        """What was added to calls after they were shown."""
        added = [event.content for event in self.events if isinstance(event, ToolCallContentChunk)]
        return "\n".join(
            one.content.text for one in added if isinstance(one, ContentItem) and isinstance(one.content, Text)
        )


def shown_by(request: RequestPermission) -> tuple[str, list[str], dict[str, tuple[object, object]]]:
    assert isinstance(request.subject, ToolCallSubject)
    content = request.subject.tool_call.content
    assert isinstance(content, list)
    lines: list[str] = []
    files: dict[str, tuple[object, object]] = {}
    for item in content:
        if isinstance(item, ContentItem) and isinstance(item.content, Text):
            lines += item.content.text.splitlines()
        elif isinstance(item, Diff):
            changes = [change for change in item.changes if isinstance(change, FileChange)]
            files |= {os.path.basename(one.path): (one.old_text, one.new_text) for one in changes}
    return request.title, lines, files


async def turn(tmp_path: Path, command: str, *answers: str, protocol: int = 1) -> Turn:
    """Runs one command in a sandbox and answers the questions about what it did."""
    need("bwrap")
    folder, user = tmp_path / "work", User(*answers)
    folder.mkdir(exist_ok=True)
    model = scripted([{"call": "sandbox_bash", "input": {"command": command}}, {"say": "Done."}])
    home = tmp_path / "home"
    async with whole(folder, model, user=user, mode="sandbox", home=home, protocol=protocol) as (_, session):
        return Turn(folder, user, await events_of(session))


MANY = "for i in $(seq 1 212); do echo $i > '!pad'$i; done; echo '{\"postinstall\": 1}' > package.json"


async def test_more_changes_than_fit_in_one_question_are_asked_in_parts_and_applied_together(tmp_path: Path) -> None:
    done = await turn(tmp_path, MANY, "allow_once")
    assert [question.title for question in done.user.asked] == [
        "Apply 213 changes to the workspace (part 1 of 2)",
        "Apply 213 changes to the workspace (part 2 of 2)",
    ]
    first, second = done.question(0), done.question(1)
    assert len(first[2]) == 200
    assert second[2]["package.json"] == (None, '{"postinstall": 1}\n')
    named = [line for line in (*first[1], *second[1]) if line.startswith("  created: ")]
    assert (len(named), len(first[2] | second[2])) == (213, 213)
    assert first[1][0] == "213 changes: 213 created."
    assert len(list(done.folder.iterdir())) == 213


async def test_a_no_to_one_part_is_a_no_to_all(tmp_path: Path) -> None:
    done = await turn(tmp_path, MANY, "allow_once", "reject_once")
    assert len(done.user.asked) == 2
    assert done.outcome == ("apply_changes", "failed")
    assert list(done.folder.iterdir()) == []


NOT_TEXT = "not plain text: bytes are shown as \\xNN"


async def test_protected_names_come_first_and_bytes_that_are_no_text_are_shown(tmp_path: Path) -> None:
    hook = "cd .git/hooks; printf '#!/bin/sh\\n# \\xff\\nevil\\n' > post-commit; chmod +x post-commit; cd ../.."
    (tmp_path / "work" / ".git" / "hooks").mkdir(parents=True)
    done = await turn(tmp_path, f"{hook}; echo a > a; echo run > z; chmod 755 z", "allow_once")
    title, lines, files = done.question()
    assert title == "Apply 3 changes to the workspace (1 protected)"
    assert lines == [
        "3 changes: 3 created.",
        "PROTECTED: these can make git, an editor, a shell or an agent run something by itself. Look at each of them:",
        f"  created: {done.folder}/.git/hooks/post-commit (file, mode 755, executable, 19 bytes, {NOT_TEXT})",
        "EXECUTABLE:",
        f"  created: {done.folder}/z (file, mode 755, executable, 4 bytes)",
        "FILES AND FOLDERS:",
        f"  created: {done.folder}/a (file, mode 644, 2 bytes)",
    ]
    assert list(files) == ["post-commit", "z", "a"]
    assert files["post-commit"] == (None, "#!/bin/sh\n# \\xff\nevil\n")
    assert (done.folder / ".git" / "hooks" / "post-commit").read_bytes() == b"#!/bin/sh\n# \xff\nevil\n"


@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_file_that_goes_hides_nothing_of_one_that_comes(tmp_path: Path, protocol: int) -> None:
    """One wire has patches for texts, and none for a file that is deleted."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "gone").write_text("gone\n")
    done = await turn(tmp_path, "rm gone; echo evil > a; echo x > b; : > empty", "reject_once", protocol=protocol)
    assert isinstance(done.user.asked[0].subject, ToolCallSubject)
    content = done.user.asked[0].subject.tool_call.content
    diffs = [item for item in content or () if isinstance(item, Diff)]
    shown = [f"{diff.patch}{diff.changes}" for diff in diffs]
    assert [text for text in ("evil\\n", "x\\n", "empty") if not any(text in one for one in shown)] == []


async def test_a_git_folder_of_another_name_is_protected(tmp_path: Path) -> None:
    done = await turn(tmp_path, "mkdir -p d/objects d/refs; echo x > d/config; echo y > d/HEAD", "reject_once")
    title, lines, _ = done.question()
    assert title.endswith("protected)")
    protected = lines[2 : lines.index("FILES AND FOLDERS:")]
    assert [os.path.basename(line.split()[1]) for line in protected] == ["HEAD", "config", "objects", "refs"]


async def test_modes_are_shown(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / name).write_text("x\n")
        (folder / name).chmod(0o644)
    done = await turn(tmp_path, "chmod 755 a; chmod 600 b; echo y > b; mkdir -m 777 c", "allow_once")
    assert done.question()[1] == [
        "3 changes: 1 created, 1 modified, 1 with another mode.",
        "EXECUTABLE:",
        f"  mode: {folder}/a (file, mode 644 -> 755, executable)",
        "FILES AND FOLDERS:",
        f"  modified: {folder}/b (file, mode 644 -> 600, 2 bytes)",
        f"  created: {folder}/c (folder, mode 777)",
    ]
    assert os.access(folder / "a", os.X_OK)


async def test_link_targets_are_shown(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "old").symlink_to("a")
    done = await turn(tmp_path, "ln -s a/b new; ln -sfn c old", "allow_once")
    assert done.question()[1][1:] == [
        "LINKS:",
        f"  created: {done.folder}/new -> a/b (link)",
        f"  modified: {done.folder}/old -> c (was -> a)",
    ]
    assert os.readlink(done.folder / "old") == "c"


@pytest.mark.parametrize("target", ["/etc", "d/d/d/d/d/d/d/d/d/../../../../../../../../../etc"])
async def test_a_link_that_leads_out_is_refused_without_a_question(tmp_path: Path, target: str) -> None:
    done = await turn(tmp_path, f"ln -s . d; ln -s {target} out; echo x > a", "allow_once", protocol=2)
    assert done.user.asked == []
    assert done.outcome == ("apply_changes", "failed")
    assert f"{done.folder}/out: it is a link to {target}, which leads out of the workspace, to /etc." in done.words
    assert list(done.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("head -c 1100000 /dev/zero > a", "a cannot be shown: it has 1100000 bytes"),
        ("for i in $(seq 1 2001); do : > $i; done", "2001 changes are more than can be shown"),
    ],
)
async def test_what_cannot_be_shown_is_refused_without_a_question(tmp_path: Path, command: str, reason: str) -> None:
    done = await turn(tmp_path, command, "allow_once", protocol=2)
    assert done.user.asked == []
    assert reason in done.words
    assert "workspace-write" in done.words
    assert list(done.folder.iterdir()) == []


async def test_large_files_are_asked_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_review, "PAGE_CHARACTERS", 100)
    done = await turn(tmp_path, "for i in a b c; do printf '%090d' 0 > $i; done", "allow_once")
    assert [list(shown_by(question)[2]) for question in done.user.asked] == [["a"], ["b"], ["c"]]
    assert sorted(path.name for path in done.folder.iterdir()) == ["a", "b", "c"]


async def test_names_are_shown_with_everything_that_is_in_them(tmp_path: Path) -> None:
    done = await turn(tmp_path, "touch $'a\\n  deleted: b' $'c\\e[8m'", "reject_once")
    assert done.question()[1][2:] == [
        f"  created: {done.folder}/a\\n  deleted: b (file, mode 644, 0 bytes)",
        f"  created: {done.folder}/c\\u001b[8m (file, mode 644, 0 bytes)",
    ]


async def test_control_characters_in_a_file_are_spelled_out(tmp_path: Path) -> None:
    done = await turn(
        tmp_path, "printf 'rm -rf x\\r# fine\\\\n\\n\\e[8mhidden' > a; printf 'one\\r\\n\\ttwo\\n' > b", "reject_once"
    )
    files = done.question()[2]
    assert files["a"] == (None, "rm -rf x\\r# fine\\\\n\n\\x1b[8mhidden")
    assert files["b"] == (None, "one\r\n\ttwo\n")


async def test_a_large_file_may_be_deleted(tmp_path: Path) -> None:
    """Nothing comes of it that was not shown."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "large").write_bytes(b"x" * 1_100_000)
    done = await turn(tmp_path, "rm large", "allow_once")
    assert done.question()[1][-1] == f"  deleted: {done.folder}/large (file)"
    assert list(done.folder.iterdir()) == []


@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_name_that_is_no_text_is_refused_without_a_question(tmp_path: Path, protocol: int) -> None:
    done = await turn(tmp_path, "echo x > $'a\\xff'; echo x > b", "allow_once", protocol=protocol)
    assert done.user.asked == []
    assert done.outcome == ("apply_changes", "failed")
    assert list(done.folder.iterdir()) == []


async def test_looking_at_a_repository_changes_nothing_that_would_be_asked_about(tmp_path: Path) -> None:
    need("git")
    setup = "git init -q . && git config user.email a@b && git config user.name a && echo x > a && git add a"
    (tmp_path / "work").mkdir()
    commit = ["/bin/bash", "-ec", f"{setup} && git commit -qm a"]
    await asyncio.to_thread(subprocess.run, commit, cwd=tmp_path / "work", check=True)
    done = await turn(tmp_path, "git status --short && git diff && git log --oneline", "reject_once")
    assert done.user.asked == []
