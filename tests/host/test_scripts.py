"""Which files of a folder a command line starts, and whether they are still the same."""

import os
from pathlib import Path

import pytest

from dragoman.host import scripts
from dragoman.host.launch_names import Launch, ScriptsRefused, runs_more
from dragoman.host.scripts import named_files, shown_name, states

HERE = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    names = ("srv.sh", "a b.sh", "lib/evil.js", "lib/index.js", "pkg/__main__.py", "mod.py", "dist/main.mjs")
    for name in (*names, "lib/evil.py", "lib/sitecustomize.py"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(name)
    return made


def found(folder: Path, launch: Launch, **environment: str) -> list[str]:
    named = named_files(str(folder), [launch], HERE | environment)
    return sorted(shown_name(str(folder), name) for name, state in named.items() if state)


@pytest.mark.parametrize(
    ("launch", "names"),
    [
        (Launch("./srv.sh"), ["srv.sh"]),
        (Launch("sh", ["srv.sh", "--port", "80"]), ["srv.sh"]),
        (Launch("sh", ["a b.sh"]), ["a b.sh"]),
        (Launch("sh", ["-c", "cd . && exec ./srv.sh;true"]), ["srv.sh"]),
        (Launch("node", ["--require=./lib/evil.js", "dist/main"]), ["dist/main.mjs", "lib/evil.js"]),
        (Launch("node", ["-r./lib/evil.js", "lib"]), ["lib/evil.js", "lib/index.js"]),
        (Launch("python3.11", ["-m", "mod"]), ["mod.py"]),
        (Launch("uv", ["run", "python", "-m", "pkg"]), ["pkg/__main__.py"]),
        (Launch("x", [], {"NODE_OPTIONS": "--require ./lib/evil.js", "MODE": "mod"}), ["lib/evil.js"]),
        (Launch("x", [], {"LD_PRELOAD": "/usr/lib/a.so:lib/evil.js"}), ["lib/evil.js"]),
        (Launch("x", ["$PWD/srv.sh", "${UNSET}/mod.py"]), ["mod.py", "srv.sh"]),
        (Launch("x", ["file://{folder}/srv.sh", "https://host/mod.py"]), ["srv.sh"]),
        (Launch("{folder}/srv.sh"), ["srv.sh"]),
        (Launch("x", ["evil.js"], cwd="lib"), ["lib/evil.js"]),
        (Launch("x", ["../srv.sh"], cwd="lib"), ["srv.sh"]),
        (Launch("srv.sh", [], {"PATH": "$PATH:lib/.."}), ["srv.sh"]),
        (Launch("srv.sh", [], {"PATH": ""}), ["srv.sh"]),
        (Launch("x", [], {"MY_TOKEN": "./srv.sh"}), ["srv.sh"]),
        (Launch("./srv.sh\0"), []),
        (Launch("x", ["./\0", "./\ud800", "~/srv.sh"], {"PATH": "\0"}), []),
        (Launch("x", ["srv.sh"], cwd="\ud800"), []),
        (Launch("x", ["lib", ".", "/etc/passwd", "nothing"]), []),
        # What is started in another folder than it seems.
        (Launch("sh", ["-c", "cd lib && node evil"]), ["lib/evil.js", "lib/index.js"]),
        (Launch("sh", ["-c", "cd lib; cd ../dist; node main.mjs"]), ["dist/main.mjs", "lib/index.js"]),
        (Launch("uv", ["--directory", "pkg", "run", "__main__.py"]), ["pkg/__main__.py"]),
        (Launch("uv", ["run", "--directory=./pkg", "__main__.py"]), ["pkg/__main__.py"]),
        (Launch("env", ["-C", "lib", "./evil.js"]), ["lib/evil.js"]),
        (Launch("env", ["-S", "-Clib ./evil.js"]), ["lib/evil.js"]),
        (Launch("tool", ["lib", "evil.js"]), ["lib/evil.js"]),
        (Launch("node", ["."], cwd="lib"), ["lib/index.js"]),
        (Launch("python3", ["./"], cwd="pkg"), ["pkg/__main__.py"]),
        # What variables have a program load first.
        (Launch("claude", [], {"NODE_OPTIONS": "--require ./lib/evil"}), ["lib/evil.js"]),
        (Launch("python3", ["-m", "evil"], {"PYTHONPATH": "pkg:lib"}), ["lib/evil.py", "lib/sitecustomize.py"]),
        (Launch("tool", [], {"PYTHONPATH": "lib"}), ["lib/sitecustomize.py"]),
        # What wildcards stand for.
        (Launch("sh", ["lib/e*.js"]), ["lib/evil.js", "what lib/e*.js stands for"]),
        (
            Launch("sh", ["-c", "cd lib && for f in ./ev?l.[j]s; do sh $f; done"]),
            ["lib/evil.js", "what lib/ev?l.[j]s stands for"],
        ),
        (Launch("sh", ["-c", ". {lib,dist}/main.mjs"]), ["dist/main.mjs", "what {lib,dist}/main.mjs stands for"]),
        (Launch("x", ["**/ev*.js", "none*"]), ["lib/evil.js", "what **/ev*.js stands for"]),
        (Launch("x", ["/etc/host*", "../*", "[", "?"]), []),
        (Launch("x", [], {"NODE_OPTIONS": "--require ./lib/evil.js http://a:password@host"}), ["lib/evil.js"]),
    ],
)
def test_what_is_named_below_the_folder_is_found(launch: Launch, names: list[str], folder: Path) -> None:
    here = [text.replace("{folder}", str(folder)) for text in (launch.command, *launch.args)]
    assert found(folder, launch._replace(command=here[0], args=here[1:]), PWD="/elsewhere") == names


def test_a_program_of_the_folder_that_is_found_on_the_path_is_one_of_its_files(folder: Path) -> None:
    (folder / "srv.sh").chmod(0o755)
    shown = "the program that srv.sh is on the search path"
    assert found(folder, Launch("srv.sh"), PATH=f"/bin:{folder}") == [shown]
    assert found(folder, Launch("srv.sh"), PATH="/bin:.") == [shown]
    assert found(folder, Launch("srv.sh")) == []
    assert found(folder, Launch("sh"), PATH=f"/bin:{folder}") == []


BIN, PACKAGE = "node_modules/.bin/server", "node_modules/@a/server"


def changed(folder: Path, launch: Launch, change: "os.PathLike[str] | str") -> list[str]:
    """What another state of the folder, made by a shell, changes."""
    before = named_files(str(folder), [launch], HERE)
    assert os.system(f"cd {folder} && {change}") == 0
    after = states(str(folder), before, HERE)
    return [shown_name(str(folder), name) for name in before if before[name] != after[name]]


@pytest.mark.parametrize(
    ("launch", "change", "names"),
    [
        (Launch("./srv.sh"), "echo >> srv.sh", ["srv.sh"]),
        (Launch("./srv.sh"), "touch srv.sh", []),
        (Launch("./srv.sh"), "rm srv.sh", ["srv.sh"]),
        (Launch("sh", ["later"]), "touch later", ["later"]),
        (Launch("sh", ["-c", "cd later && ./x"]), "mkdir later; touch later/x", ["later/x"]),
        (Launch("node", ["."]), "touch index.js", ["index.js"]),
        (Launch("x", [], {"NODE_OPTIONS": "-r ./later http://a:password@host"}), "touch later.js", ["later.js"]),
        (Launch("x", [], {"TOKEN_COMMAND": "./later"}), "touch later", ["later"]),
        (Launch("npx", ["-y", "@a/server@1.2"]), "mkdir -p node_modules/.bin; touch node_modules/.bin/server", [BIN]),
        (
            Launch("npx", ["@a/server"]),
            f"mkdir -p {PACKAGE}; touch {PACKAGE}/package.json",
            [f"{PACKAGE}/package.json"],
        ),
        (Launch("npm", ["run", "mcp"]), "touch package.json", ["package.json"]),
        (Launch("sh", ["-c", "cd lib; make up"]), "touch lib/Makefile", ["lib/Makefile"]),
        (Launch("uv", ["run", "server"]), "mkdir -p .venv/bin; touch .venv/bin/server", [".venv/bin/server"]),
        (Launch("uv", ["--directory", "lib", "run", "x"]), "touch lib/pyproject.toml", ["lib/pyproject.toml"]),
        (Launch("docker", ["compose", "run", "x"]), "touch compose.yaml", ["compose.yaml"]),
        (Launch("sh", ["later"]), "mkdir later", []),
        (Launch("sh", ["later"]), "mkfifo later", []),
        (Launch("./srv.sh"), "ln -sf mod.py srv.sh", ["srv.sh"]),
        (Launch("./srv.sh"), "ln -sf /bin/true srv.sh", ["srv.sh"]),
        (Launch("sh", ["l*/ev*.js"]), "echo changed > lib/evil.js", ["lib/evil.js"]),
        (Launch("sh", ["l*/ev*.js"]), "touch lib/every.js", ["what l*/ev*.js stands for"]),
        (Launch("sh", ["later*.sh"]), "touch later1.sh", ["what later*.sh stands for"]),
        (Launch("./lib/evil.js"), "mv lib old && mkdir lib && echo > lib/evil.js", ["lib/evil.js"]),
    ],
)
def test_another_file_in_its_place_is_noticed(launch: Launch, change: str, names: list[str], folder: Path) -> None:
    assert changed(folder, launch, change) == names


def test_a_link_that_leads_out_is_known_by_where_it_leads(folder: Path) -> None:
    (folder / "run").symlink_to("/bin/true")
    assert named_files(str(folder), [Launch("./run")], HERE) == {
        f"{folder}/run": f"leads to {os.path.realpath('/bin/true')}"
    }
    assert changed(folder, Launch("./run"), "ln -sf /bin/false run") == ["run"]


def test_a_secret_that_stands_in_the_file_is_no_name(folder: Path) -> None:
    assert list(named_files(str(folder), [Launch("./srv.sh", [], {"API_KEY": "sk/0123.x"})], HERE)) == [
        f"{folder}/srv.sh"
    ]


def test_a_key_among_the_words_of_a_variable_is_no_name(folder: Path) -> None:
    env = {"OPTIONS": "./later --at postgres://me:hunter.22@host/db ghp_0123456789abcdefghij0123"}
    names = "".join(named_files(str(folder), [Launch("./srv.sh", [], env)], HERE))
    assert "later" in names
    assert "hunter" not in names
    assert "ghp_" not in names


def test_more_folders_than_can_be_looked_into_are_refused(folder: Path) -> None:
    line = ";".join(f"cd d{number}" for number in range(20))
    with pytest.raises(ScriptsRefused, match="in more than 16 folders"):
        named_files(str(folder), [Launch("sh", ["-c", line])], HERE)


def test_a_pattern_for_too_many_files_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.host.wild_paths.MOST_MEANT", 1)
    with pytest.raises(ScriptsRefused, match="name them, or put the line into a script"):
        named_files(str(folder), [Launch("sh", ["lib/*"])], HERE)


def test_too_many_names_and_too_many_bytes_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ScriptsRefused, match="names more than 4096 files"):
        named_files(str(folder), [Launch("x", [f"n{number}" for number in range(4097)])], HERE)
    monkeypatch.setattr(scripts, "BYTES", 5)
    with pytest.raises(ScriptsRefused, match=r"srv\.sh: the files that the configuration starts are longer than 5"):
        named_files(str(folder), [Launch("./srv.sh")], HERE)


@pytest.mark.parametrize(
    ("launch", "more"),
    [
        (Launch("npm", ["run", "mcp"]), True),
        (Launch("/usr/bin/python3", ["-m", "server"]), True),
        (Launch("./srv.sh"), True),
        (Launch("tool", ["lib"]), True),
        (Launch("tool", ["."]), True),
        (Launch("tool", [], {"PYTHONPATH": "nothing"}), True),
        (Launch("tool", [], {"LD_LIBRARY_PATH": "/usr/lib:"}), True),
        (Launch("tool", [], {"LD_LIBRARY_PATH": "/usr/lib"}), False),
        (Launch("tool", ["--port", "80"]), False),
    ],
)
def test_what_runs_more_than_it_names_is_known(launch: Launch, more: bool, folder: Path) -> None:
    assert runs_more(str(folder), launch, HERE) is more
