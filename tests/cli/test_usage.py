"""The command line itself: help, versions, and what is said about a command that cannot be run."""

import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.cli.main import COMMANDS, DEFAULT_ACTIONS, command_line, main
from dragoman.version import VERSION
from tests.support.command import call


@pytest.mark.parametrize("arguments", [["--version"], ["acp", "--version"], ["demo", "--version"]])
def test_every_command_tells_its_version(arguments: list[str]) -> None:
    assert call(*arguments) == (0, f"dragoman {VERSION}\n", "")


def test_the_installed_program_is_the_same() -> None:
    program = Path(sys.executable).parent / "dragoman"
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"dragoman {VERSION}\n"


def test_python_can_start_it_by_its_name() -> None:
    done = subprocess.run([sys.executable, "-m", "dragoman", "--frob"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: dragoman [-h]")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_can_be_started(command: str) -> None:
    """Really: most tests of a command fork it, from a process that has imported more than it would."""
    line = [sys.executable, "-m", "dragoman.cli.main", command, "--help"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: dragoman {command} ")


HELP = {
    "": [
        "usage: dragoman [-h] [--version] COMMAND ...",
        "acp ",
        "demo ",
        "`dragoman COMMAND --help` explains a command.",
    ],
    "acp": [
        "usage: dragoman acp [-h]",
        "[--resume [ID] |",
        "script:FILE",
        '{"turns": [',
        "on every command:",
    ],
    "demo": ["usage: dragoman demo [-h]", "a turn, a cancel, a failure", "on every command:"],
}


@pytest.mark.parametrize("command", HELP)
def test_help_explains_a_command(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as left:
        main([*command.split(), "--help"])
    shown = capsys.readouterr().out
    assert left.value.code == 0
    assert [line for line in HELP[command] if str(line) not in shown] == []
    assert max(map(len, shown.splitlines())) <= 80


def test_every_command_has_the_common_options() -> None:
    (commands,) = [action for action in command_line()._actions if action.dest == "command"]
    assert isinstance(commands.choices, dict)
    for name, parser in commands.choices.items():
        options = {option for action in parser._actions for option in action.option_strings}
        assert {"--help", "--log-level", "--protocol", "--trace", "--version"} <= options, name


NOWHERE = "/nowhere/x: cannot {} the {}: No such file or directory"
WRONG = {
    "": "usage: dragoman",
    "nothing": "there is no command 'nothing'; `dragoman --help` lists what there is",
    "chta": "there is no command 'chta'; did you mean `dragoman chat`?",
    "fix the bug": "there is no command 'fix'; to send a prompt write: dragoman run 'fix the bug'",
    "sessions lst": "there is no action 'lst'; did you mean `dragoman sessions list`?",
    "sessions xyzzy": "there is no action 'xyzzy'; there are list, search, stats,",
    "trace": "dragoman trace: error: an action is missing: record, view, ",
    "cluster": "dragoman cluster status: error: the following arguments are required: --store",
    "--frob": "usage: dragoman [-h] [--version] COMMAND ...\ndragoman: error: unrecognized arguments: --frob",
    "demo --frob": "usage: dragoman demo [-h] [--protocol",
    "sessions list --frob x": "dragoman sessions list: error: unrecognized arguments: --frob x",
    "chat foo": "dragoman chat: error: unrecognized arguments: foo; to send a prompt write: dragoman run foo\n",
    "run --frob x": "dragoman run: error: unrecognized arguments: --frob",
    "acp --model": "argument -m/--model: expected one argument",
    "acp --model gpt": "dragoman: --model gpt: Model gpt needs a provider: write PROVIDER/NAME, e.g. ollama/gpt.",
    "acp --model script:{good} --mode mad": "dragoman: unknown mode 'mad'; there are ",
    "acp --model script:": "dragoman: which script? --model script:FILE",
    "acp --model script:/nowhere/x": f"dragoman: {NOWHERE.format('read', 'script')}",
    "acp --model script:{good} --protocol 3": "argument --protocol: invalid choice: 3 (choose from 1, 2)",
    "acp --model script:{good} --proto 1": "unrecognized arguments: --proto 1; did you mean --protocol?",
    "check agnt": "argument role: invalid choice: 'agnt'; did you mean agent?",
    "run list --allow edti": "argument --allow: invalid choice: 'edti'; did you mean edit?",
    "serve --port abc": "usage: dragoman serve [options] [-- CMD ...]\ndragoman serve: error: argument --port: ",
    "acp --model script:{good} --trace /nowhere/x": f"dragoman: {NOWHERE.format('write', 'trace')}",
    "acp --model script:{good} more": "unrecognized arguments: more",
    "acp --model script:{torn}": "torn.json: the script is not JSON: Input data was truncated",
    "acp --model script:{bad}": "bad.json: $.turns[0].steps[1].stop: must be one of end_turn,",
    "demo --trace /nowhere/x": f"dragoman: {NOWHERE.format('write', 'trace')}",
}
SCRIPTS = {
    "good": '{"turns": [{"steps": []}]}',
    "torn": '{"turns": [',
    "bad": '{"turns": [{"steps": [{"say": "x"}, {"stop": "boredom"}]}]}',
}


@pytest.mark.parametrize("arguments", WRONG)
def test_a_command_that_cannot_be_run_is_exit_2_and_a_sentence(arguments: str, tmp_path: Path) -> None:
    files = {name: tmp_path / f"{name}.json" for name in SCRIPTS}
    for name, file in files.items():
        file.write_text(SCRIPTS[name])
    code, out, error = call(*arguments.format(**files).split())
    assert (code, out) == (2, "")
    assert WRONG[arguments] in error
    assert "Traceback" not in error


def test_a_sentence_in_the_place_of_a_command_is_shown_as_a_prompt() -> None:
    done = call("it's broken")
    sentence = """there is no command "it's broken"; to send a prompt write: dragoman run 'it'"'"'s broken'\n"""
    assert (done.code, done.error.endswith(sentence)) == (2, True)


@pytest.mark.parametrize("command", ["", "run", "sessions"])
def test_help_as_a_word_is_the_help(command: str) -> None:
    assert call("help", *command.split()) == call(*command.split(), "--help")


@pytest.mark.parametrize(("command", "action"), DEFAULT_ACTIONS.items())
def test_a_command_without_an_action_lists_what_there_is(command: str, action: str, tmp_path: Path) -> None:
    for options in ([], ["--json"]):
        alone = call(command, *options, DRAGOMAN_HOME=str(tmp_path))
        assert alone == call(command, action, *options, DRAGOMAN_HOME=str(tmp_path))


def test_options_of_every_command_may_still_stand_before_the_action(tmp_path: Path) -> None:
    done = call("sessions", "--trace", str(tmp_path / "trace"), "list", "--json", DRAGOMAN_HOME=str(tmp_path / "home"))
    assert (done.code, done.out) == (0, "[]\n")


def test_v_logs_what_the_program_does(tmp_path: Path) -> None:
    done = call("sessions", "list", "-v", DRAGOMAN_HOME=str(tmp_path))
    assert (done.code, "info dragoman.cli" in done.error) == (0, True)


def test_help_has_the_options_of_the_protocol_only_where_it_is_spoken() -> None:
    assert "--protocol" in call("run", "--help").out
    assert "--protocol" not in call("login", "--help").out
    assert call("config", "path", "--protocol", "1").code == 0
