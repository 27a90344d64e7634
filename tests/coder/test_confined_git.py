"""A confined command that was allowed leaves nothing that runs when a person looks, and can commit all the same."""

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from dragoman.host.sandbox import confine
from tests.support.confined_commands import confinement
from tests.support.editor import Editor, Message, answer_questions, turns
from tests.support.files import snapshot
from tests.support.git_repository import git, program, repository
from tests.support.needs import need
from tests.support.scripted_turns import RecordingModel, apart, call
from tests.support.waiting import until
from tests.support.whole_agent import User, events_of, whole


async def allowed(work: Path, *commands: str) -> list[str]:
    """What allowed commands of mode workspace-write told the model."""
    need("bwrap")
    home = work.parent / "home"
    model = RecordingModel(apart(call("bash", command=command) for command in commands))
    async with whole(work, model.make, user=User("allow_once"), mode="workspace-write", home=home) as (_, session):
        await events_of(session)
    assert len(model.results) == len(commands)
    return model.results


EVIL = "evil"
ATTACKS = {
    "commondir": "mkdir -p c/objects c/refs && cp .git/HEAD c/ && printf '[core]\\n\\tfsmonitor = {evil}\\n' > c/config"
    " && echo ../c > .git/commondir",
    "hooks by commondir": "mkdir -p c/objects c/refs c/hooks && cp .git/HEAD c/ && cp .git/config c/config"
    " && cp {evil} c/hooks/post-index-change && echo ../c > .git/commondir",
    "config": "git config core.fsmonitor {evil}",
    "config.worktree": "git config extensions.worktreeConfig true; git config --worktree core.fsmonitor {evil}",
    "hooks": "cp {evil} .git/hooks/post-index-change",
    "info": "mkdir -p .git/info; echo '* filter=x' > .git/info/attributes",
    "module": "printf '[core]\\n\\tfsmonitor = {evil}\\n' > .git/modules/sub/config",
    "gitdir file": "rm -rf .git; mv .git was; echo 'gitdir: was' > .git",
    "bare folder": "mkdir -p new/objects new/refs && echo 'ref: refs/heads/x' > new/HEAD"
    " && printf '[core]\\n\\tworktree = .\\n\\tfsmonitor = {evil}\\n' > new/config",
    "bare root": "mkdir -p docs/objects docs/refs && echo 'ref: refs/heads/x' > docs/HEAD"
    " && printf '[core]\\n\\tworktree = .\\n\\tfsmonitor = {evil}\\n' > docs/config",
    "nested": "git init -q inner && git -C inner config core.fsmonitor {evil}",
    "moved": "mkdir was; mv nested/* nested/.git was/; mv docs d; mv nested docs",
    "closed": "mkdir shut && git init -q shut/in && git -C shut/in config core.fsmonitor {evil}; chmod 000 shut",
}


@pytest.mark.parametrize("attack", ATTACKS)
async def test_no_command_makes_git_run_something_later(tmp_path: Path, attack: str) -> None:
    repository(tmp_path / "other")
    work = repository(tmp_path / "work")
    git(work, "-c", "protocol.file.allow=always", "submodule", "add", "-q", "../other", "sub")
    repository(work / "nested")
    (work / "docs").mkdir()
    (work / "docs" / "text").write_text("text")
    evil = program(work / EVIL, f"touch {tmp_path}/ran")
    await allowed(work, ATTACKS[attack].format(evil=evil))
    folders = [work, *(path for path in work.rglob("*") if path.is_dir() and ".git" not in path.parts)]
    for folder in folders:
        git(folder, "status")
        git(folder, "diff")
    assert not (tmp_path / "ran").exists()
    assert (work / ".git" / "HEAD").read_text() == "ref: refs/heads/main\n"


def test_one_allowed_command_of_a_real_agent_leaves_nothing_that_git_runs(tmp_path: Path) -> None:
    """As a user has it: `dragoman acp`, `make -s test`; then `git status` by hand, everywhere."""
    need("make")
    need("bwrap")
    work = repository(tmp_path / "work")
    evil = program(work / EVIL, f"touch {tmp_path}/ran")
    attacks = [ATTACKS[name].format(evil=evil) for name in ("commondir", "config", "hooks", "bare folder", "nested")]
    names = ["mkdir -p sub pkg/.vscode; echo x > sub/.envrc; echo x > pkg/.vscode/tasks.json"]
    program(work / "attack.sh", *(f"({attack}) 2> /dev/null" for attack in [*attacks, *names]))
    (work / "Makefile").write_text("test:\n\t@./attack.sh\n")

    def agree(message: Message) -> dict[str, Any]:
        chosen = next(option for option in message["params"]["options"] if option["kind"] == "allow_once")
        return {"result": {"outcome": {"outcome": "selected", "optionId": chosen["optionId"]}}}

    commit = "git add Makefile && git commit -q -m tested"
    script = turns(apart([call("bash", command="make -s test"), call("bash", command=commit)]))
    with Editor(work, script, "--mode", "workspace-write", env={"DRAGOMAN_HOME": str(tmp_path / "home")}) as editor:
        editor.open()
        asked, told = answer_questions(editor, agree)
    assert asked == []
    for folder in (work, *(path for path in work.rglob("*") if path.is_dir() and ".git" not in path.parts)):
        git(folder, "status")
    assert not (tmp_path / "ran").exists()
    assert git(work, "log", "--format=%s") == "tested\nfirst\n"
    assert [name for name in ("sub/.envrc", "pkg/.vscode", "inner/.git", "new/HEAD") if (work / name).exists()] == []
    assert "sub/.envrc" in json.dumps(told)


async def test_a_client_that_leaves_while_a_command_runs_leaves_nothing_behind(tmp_path: Path) -> None:
    need("bwrap")
    work = repository(tmp_path / "work")
    (work / "sub").mkdir()
    loop = call("bash", command="while :; do echo x > sub/.envrc; echo x > .git/hooks/x; touch ready; done")
    home = {"DRAGOMAN_HOME": str(tmp_path / "home")}
    with Editor(work, turns([loop]), "--mode", "workspace-write", env=home) as editor:
        editor.open()
        editor.send({"id": 7000, "method": "session/prompt", "params": editor.words("go")})
        await until((work / "ready").exists)
        editor.leave()
    assert list((work / "sub").iterdir()) == []
    assert not (work / ".git" / "hooks" / "x").exists()
    assert not [path for path in work.iterdir() if path.name in (".vscode", ".envrc", ".idea")]


async def test_new_protected_names_are_moved_to_a_quarantine_and_that_is_said(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")
    (work / "pkg").mkdir()
    (work / "pkg" / ".npmrc").write_text("mine")
    before = snapshot(work)
    (result,) = await allowed(
        work,
        "mkdir -p pkg/.vscode sub; echo x > pkg/.vscode/tasks.json; echo evil > sub/.envrc; ln -s / sub/.idea;"
        "echo x > AGENTS.md; echo x > .envrc; echo x > pkg/.npmrc; mkfifo sub/.bashrc; echo done; rm pkg/.npmrc",
    )
    (work / "sub").rmdir()
    assert {path: was for path, was in snapshot(work).items() if "/.git" not in path} == {
        path: was for path, was in before.items() if "/.git" not in path
    }
    (folder,) = (tmp_path / "home" / "quarantine").iterdir()
    assert (folder / "work" / "sub" / ".envrc").read_text() == "evil\n"
    assert (folder / "work" / "pkg" / ".vscode" / "tasks.json").read_text() == "x\n"
    assert (folder / "work" / "AGENTS.md").exists()
    for name in ("sub/.envrc", "pkg/.vscode", "sub/.idea", "AGENTS.md", str(folder), "write_file"):
        assert name in result
    assert "done" in result


async def test_protected_files_among_dependencies_are_put_back_and_do_not_hinder(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")
    for number in range(60):
        (work / "node_modules" / f"p{number}").mkdir(parents=True)
        (work / "node_modules" / f"p{number}" / ".editorconfig").write_text("root = true\n")
    (work / "node_modules" / "p1" / ".vscode").mkdir()
    (work / "node_modules" / "p1" / ".vscode" / "tasks.json").write_text("{}")
    (result,) = await allowed(
        work,
        "echo evil > node_modules/p1/.editorconfig; echo evil > node_modules/p1/.vscode/tasks.json;"
        "rm node_modules/p2/.editorconfig; rm -r node_modules/p3 && ln -sf /etc/passwd node_modules/p4/.editorconfig",
    )
    assert "p1/.editorconfig" in result
    for number in (1, 2, 4):
        path = work / "node_modules" / f"p{number}" / ".editorconfig"
        assert (path.is_symlink(), path.read_text()) == (False, "root = true\n")
    assert (work / "node_modules" / "p1" / ".vscode" / "tasks.json").read_text() == "{}"
    assert not (work / "node_modules" / "p3").exists()


async def test_a_process_that_outlives_its_command_writes_nothing_afterwards(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")
    (work / "sub").mkdir()
    await allowed(
        work,
        "(setsid sh -c 'while :; do echo x > sub/.envrc; done' &> /dev/null &); until [ -e sub/.envrc ]; do :; done",
    )
    assert list((work / "sub").iterdir()) == []


async def test_what_is_read_only_is_not_replaced_by_moving_a_folder_above_it(tmp_path: Path) -> None:
    """A small file, a folder that is too large to be remembered, and one that a link with a protected name leads to."""
    work = tmp_path / "work"
    for folder in ("pkg/deep", "large/.vscode", "conf/real"):
        (work / folder).mkdir(parents=True)
    (work / "pkg" / "deep" / ".mcp.json").write_text("mine")
    (work / "large" / ".vscode" / "tasks.json").write_bytes(b"mine" * 1_000_000)
    (work / "conf" / "real" / "zed").write_text("mine")
    (work / "conf" / "alias").symlink_to("real")
    (work / ".zed").symlink_to("conf/alias/zed")
    (work / ".idea").symlink_to("missing/idea")
    commands = [
        "mv pkg was; mkdir -p pkg/deep; echo evil > pkg/deep/.mcp.json",
        "mv large was2; mkdir -p large/.vscode; echo evil > large/.vscode/tasks.json",
        "mv conf was3; mkdir -p conf/real; echo evil > conf/real/zed; ln -s real conf/alias",
        "mkdir missing; echo evil > missing/idea",
    ]
    results = await allowed(work, *commands)
    assert (work / "pkg" / "deep" / ".mcp.json").read_text() == "mine"
    assert (work / "large" / ".vscode" / "tasks.json").read_bytes()[:5] == b"minem"
    assert (work / ".zed").read_text() == "mine"
    assert not (work / ".idea").exists()
    assert "Put back as it was before the command" in results[0]


async def test_what_is_read_only_is_not_changed_under_another_name(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / ".vscode").mkdir(parents=True)
    for path in (work / ".envrc", work / ".vscode" / "tasks.json"):
        path.write_text("mine")
        os.link(path, work / f"other-{path.name.strip('.')}")
    await allowed(work, "for file in other-*; do echo evil > $file; done")
    assert (work / "other-envrc").read_text() == "evil\n"
    assert [(work / ".envrc").read_text(), (work / ".vscode" / "tasks.json").read_text()] == ["mine", "mine"]


async def test_names_that_are_no_text_are_spelled_out_in_what_is_said(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (result,) = await allowed(work, "mkdir $'\\xff' $'a\\nb\\e[1m'; for one in *; do echo evil > \"$one/.envrc\"; done")
    assert [os.listdir(folder) for folder in work.iterdir()] == [[], []]
    assert "\\udcff/.envrc" in result
    assert "a\\nb\\u001b[1m/.envrc" in result


async def test_a_protected_link_that_leads_elsewhere_afterwards_is_taken_away(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "conf").mkdir(parents=True)
    (work / "conf" / "zed").write_text("mine")
    (work / "alias").symlink_to("conf")
    (work / ".zed").symlink_to("alias/zed")
    (result,) = await allowed(work, "mkdir evil; echo evil > evil/zed; rm alias; ln -s evil alias")
    assert not os.path.lexists(work / ".zed")
    assert "work/.zed" in result


async def test_hooks_among_the_files_of_a_repository_are_not_changed(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")
    git(work, "config", "core.hooksPath", "tools/hooks")
    (work / "tools" / "hooks").mkdir(parents=True)
    await allowed(work, "echo evil > tools/hooks/post-index-change")
    assert list((work / "tools" / "hooks").iterdir()) == []


async def test_files_that_git_is_told_to_run_are_not_changed(tmp_path: Path) -> None:
    """Named by the configuration, or by a link among the hooks; also those that are not there yet."""
    work = repository(tmp_path / "work")
    (work / "tools").mkdir()
    for name in ("monitor.sh", "hook.sh", "settings"):
        (work / "tools" / name).write_text("mine")
    git(work, "config", "core.fsmonitor", "./tools/monitor.sh")
    git(work, "config", "include.path", "../tools/settings")
    git(work, "config", "diff.external", "tools/missing.sh")
    (work / ".git" / "hooks" / "post-checkout").symlink_to("../../tools/hook.sh")
    names = ("monitor.sh", "hook.sh", "settings", "missing.sh")
    await allowed(work, *(f"echo evil > tools/{name}" for name in names), "mv tools t; cp -r t tools")
    assert {path.name: path.read_text() for path in (work / "tools").iterdir()} == dict.fromkeys(names[:3], "mine")


async def test_a_link_with_a_protected_name_protects_what_it_leads_to(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")
    (work / "docs").mkdir()
    (work / "docs" / "guide.md").write_text("mine")
    (work / "CLAUDE.md").symlink_to("docs/guide.md")
    await allowed(work, "echo evil > docs/guide.md", "rm CLAUDE.md; echo evil > CLAUDE.md")
    assert (work / "docs" / "guide.md").read_text() == "mine"
    assert os.readlink(work / "CLAUDE.md") == "docs/guide.md"


# -- committing --------------------------------------------------------------------------------------------------------

WORK = [
    "echo two > file && echo new > new && git add -A && git status --short",
    "git commit -q -m 'second one'",
    "git switch -q -c topic && echo three > file && git stash -q",
    "git stash pop -q && git commit -q -am third && git tag v1",
    "git switch -q main && git merge -q --no-ff -m merged topic && git branch -q -d topic",
    "echo four > file && git reset -q --hard && git rm -q new",
    "git commit -q --amend -m amended && git pack-refs --all",
]
LOG = ["amended", "first", "second one", "third"]


@pytest.mark.parametrize("kind", ["repository", "worktree", "submodule"])
async def test_committing_works_under_bubblewrap(tmp_path: Path, kind: str) -> None:
    work = repository(tmp_path / "work")
    if kind == "worktree":
        git(work, "switch", "-q", "-c", "elsewhere")
        git(work, "worktree", "add", "-q", "../linked", "main")
        work = tmp_path / "linked"
    elif kind == "submodule":
        outer = repository(tmp_path / "outer")
        git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", "../work", "sub")
        work = outer / "sub"
        git(work, "config", "user.name", "A")
        git(work, "config", "user.email", "a@example.com")
    results = await allowed(work, *WORK)
    assert results == ["M  file\nA  new\n", *([""] * 6)]
    assert sorted(git(work, "log", "--format=%s").split("\n")[:-1]) == LOG
    assert git(work, "status", "--short") == ""
    assert git(work, "fsck", "--strict", "--no-dangling") == ""
    assert git(work, "reflog", "-1", "--format=%gs") == "commit (amend): amended\n"
    assert git(work, "tag") == "v1\n"
    assert sorted(path.name for path in work.iterdir()) == [".git", "file"]


async def test_the_first_commit_of_a_repository_and_large_files_work_as_well(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q", "-b", "main")
    git(work, "config", "user.name", "A")
    git(work, "config", "user.email", "a@example.com")
    (work / ".git" / "lfs").mkdir()
    attempts = "mkdir -p .git/lfs/objects/ab .git/lfs/refs; echo x > .git/lfs/objects/ab/x; echo x > .git/lfs/HEAD"
    results = await allowed(work, "echo one > file && git add file && git commit -q -m first", attempts)
    assert results[0] == ""
    assert git(work, "log", "--format=%s") == "first\n"
    assert git(work, "reflog", "--format=%gs") == "commit (initial): first\n"
    assert (work / ".git" / "lfs" / "objects" / "ab" / "x").exists()
    assert not (work / ".git" / "lfs" / "HEAD").exists()


async def test_what_another_program_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")
    (work / "new").write_text("new")
    os.mkfifo(work / "go")
    os.mkfifo(work / "gone")

    def meanwhile() -> None:
        with open(work / "gone", "rb"):
            git(work, "update-index", "--add", "new")
        with open(work / "go", "wb"):
            pass

    thread = threading.Thread(target=meanwhile)
    thread.start()
    (result,) = await allowed(work, ": > gone; cat go; echo other > other; git add other")
    thread.join()
    assert "index was changed by another program meanwhile" in result
    assert git(work, "diff", "--cached", "--name-only") == "new\n"


async def test_no_link_and_nothing_odd_comes_back_from_the_layer(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")
    before = (work / ".git" / "HEAD").read_text()
    (result,) = await allowed(
        work,
        "ln -sf /etc/passwd .git/ORIG_HEAD; echo 'ref: ../x' > .git/HEAD; rm .git/index; mkfifo .git/index;"
        "ln -s /tmp .git/refs/heads/out; ln -s /tmp .git/objects/aa; ln -s /tmp .git/logs/refs/out; echo x > .git/evil;"
        "echo /tmp > .git/objects/info/alternates; mkdir .git/objects/odd .git/objects/pack/odd .git/refs/odd;"
        "echo x > .git/refs/odd/config; echo x > .git/logs/config; mkdir -p .git/objects/ab;"
        "touch .git/objects/ab/HEAD",
    )
    assert (work / ".git" / "HEAD").read_text() == before
    assert git(work, "status", "--short") == ""
    assert [path for path in (work / ".git").rglob("*") if path.is_symlink() or path.name == "evil"] == []
    assert not (work / ".git" / "objects" / "info" / "alternates").exists()
    for path in ("objects/odd", "objects/pack/odd", "refs/odd/config", "logs/config", "objects/ab/HEAD"):
        assert not (work / ".git" / path).exists(), path
    assert "evil" in result


async def test_an_index_that_leads_into_the_git_folder_does_not_come_back(tmp_path: Path) -> None:
    """`git restore .` writes what the index says, and a hook would run at once."""
    work = repository(tmp_path / "work")
    program(work / "evil", f"touch {tmp_path}/ran")
    commands = [
        "git update-index --add --cacheinfo 100755,$(git hash-object -w evil),xgit/hooks/post-index-change",
        "sed -i 's,xgit/hooks,.git/hooks,' .git/index; git config index.skipHash true; git ls-files",
    ]
    results = await allowed(work, " && ".join(commands))
    assert "index was not changed: the command left something else than git does" in results[0]
    git(work, "restore", ".")
    git(work, "status")
    assert not (tmp_path / "ran").exists()
    assert git(work, "ls-files") == "file\n"


async def test_a_git_file_that_the_repository_does_not_know_gives_no_way_into_it(tmp_path: Path) -> None:
    """A workspace may come with a `.git` that points to a user's private repository."""
    private = repository(tmp_path / "private")
    git(private, "worktree", "add", "-q", "../real")
    work = tmp_path / "work"
    work.mkdir()
    (work / ".git").write_text((tmp_path / "real" / ".git").read_text())
    await allowed(work, "git commit -q --allow-empty -m evil; echo x > ../private/.git/evil")
    assert git(private, "log", "--all", "--format=%s") == "first\n"
    assert not (private / ".git" / "evil").exists()


async def test_a_workspace_that_is_itself_a_git_folder_is_read_only(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q", "--bare")
    before = snapshot(work)
    (result,) = await allowed(work, "echo x > hooks/post-checkout; git config core.fsmonitor x")
    assert "Read-only file system" in result
    assert snapshot(work) == before


@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
def test_what_is_hidden_stays_hidden_though_it_is_protected_as_well(tmp_path: Path, level: str) -> None:
    """A session in the home folder: keys are among the protected names."""
    for folder in (".ssh", ".config/gh", ".docker"):
        (tmp_path / folder).mkdir(parents=True)
    keys = [tmp_path / ".ssh" / "id", tmp_path / ".config" / "gh" / "hosts.yml", tmp_path / ".docker" / "config.json"]
    for key in keys:
        key.write_text("canary")
    hidden = [str(tmp_path / ".ssh"), str(keys[1]), str(keys[2])]
    script = "cat .ssh/id .config/gh/hosts.yml .docker/config.json; echo $?"
    with confine(
        ["/bin/sh", "-c", script],
        cwd=str(tmp_path),
        writable=[str(tmp_path)],
        hidden=hidden,
        confinement=confinement(level),
    ) as box:
        environment = {"PATH": os.environ["PATH"], **box.environment}
        done = subprocess.run(box.argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "canary" not in done.stdout
    assert done.stdout != ""
    assert all(key.read_text() == "canary" for key in keys)


@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
def test_a_path_that_is_protected_for_the_session_is_not_changed_by_a_command(tmp_path: Path, level: str) -> None:
    """Such as a script that a trusted configuration starts."""
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / "sub" / "server.sh").write_text("mine")
    paths = [str(work / "sub" / "server.sh"), str(work / "sub" / "later.sh")]
    found = confinement(level)
    script = "cd sub; echo evil > server.sh; rm -f server.sh; echo evil > later.sh; true"
    with confine(
        ["/bin/sh", "-c", script],
        cwd=str(work),
        writable=[str(work)],
        protected_paths=paths,
        quarantine=str(tmp_path / "quarantine"),
        confinement=found,
    ) as box:
        subprocess.run(box.argv, cwd=work, env={"PATH": os.environ["PATH"], **box.environment}, check=True)
    assert (work / "sub" / "server.sh").read_text() == "mine"
    assert [path.name for path in (work / "sub").iterdir()] == ["server.sh"]


# -- under Landlock alone ----------------------------------------------------------------------------------------------


@pytest.fixture
def by_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without bubblewrap."""
    found = confinement("landlock")
    monkeypatch.setattr("dragoman.coder.execution.probe", lambda: found)
    monkeypatch.setattr("dragoman.host.sandbox.probe", lambda: found)


async def turn(work: Path, user: User, *commands: str) -> list[str]:
    model = RecordingModel(apart(call("bash", command=command) for command in commands))
    home = work.parent / "home"
    async with whole(work, model.make, user=user, mode="workspace-write", home=home) as (_, session):
        await events_of(session)
    return model.results


@pytest.mark.usefixtures("by_landlock")
async def test_committing_asks_to_run_unconfined_every_time(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")
    (work / "new").write_text("new")
    user = User("allow_once")
    await turn(work, user, "git add new && git commit -q -m second", "git commit -q --allow-empty -m third")
    assert git(work, "log", "--format=%s") == "third\nsecond\nfirst\n"
    assert [question.title for question in user.asked] == [
        "Unconfined: git add new && git commit -q -m second",
        "Unconfined: git commit -q --allow-empty -m third",
    ]
    assert not any(option.kind == "allow_always" for question in user.asked for option in question.options)


@pytest.mark.usefixtures("by_landlock")
async def test_what_only_looks_can_write_nothing_under_landlock_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.coder.tools.bash.paths_of", lambda parsed: ())
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    user = User("reject_once")
    (result,) = await turn(work, user, "echo x > sub/made; cat /dev/null && echo done")
    assert (user.asked, list((work / "sub").iterdir())) == ([], [])
    assert "done" in result


@pytest.mark.usefixtures("by_landlock")
async def test_a_git_folder_is_read_only_for_what_is_more_than_git(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")
    before = snapshot(work / ".git")
    user = User("allow_once")
    await turn(work, user, "true; git commit -q --allow-empty -m x", "echo x > .git/hooks/x; echo x > .git/commondir")
    assert [question.title.startswith("Unconfined") for question in user.asked] == [False, False]
    assert snapshot(work / ".git") == before


@pytest.mark.usefixtures("by_landlock")
async def test_nested_protected_names_are_taken_back_under_landlock_as_well(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")
    repository(work / "nested")
    (work / "pkg" / ".vscode").mkdir(parents=True)
    (work / "pkg" / ".vscode" / "tasks.json").write_text("mine")
    user = User("allow_once")
    (result,) = await turn(
        work,
        user,
        "cd pkg; echo evil > .vscode/tasks.json; echo evil > .envrc; mkdir -p x/objects; echo > x/HEAD;"
        "echo evil >> ../nested/.git/config; echo done",
    )
    assert "done" in result
    assert (work / "pkg" / ".vscode" / "tasks.json").read_text() == "mine"
    assert sorted(path.name for path in (work / "pkg").iterdir()) == [".vscode"]
    assert "evil" not in (work / "nested" / ".git" / "config").read_text()
    assert "pkg/.envrc" in result
