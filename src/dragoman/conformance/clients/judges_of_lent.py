"""The judges of files and terminals that a client lends."""

from typing import Any

from dragoman.conformance.clients.judges import judge
from dragoman.conformance.clients.lent import LIMIT_BYTES, SECRET, TEXT, WRITTEN, result_of
from dragoman.conformance.clients.runs import ClientRun
from dragoman.conformance.connection import Message
from dragoman.conformance.verdicts import NotTested, RowFailed
from dragoman.errors import NOT_FOUND


def _expect_error(answer: Message, what: str) -> None:
    if "error" not in answer:
        raise RowFailed(f"{what} is answered with a result")


# -- files -------------------------------------------------------------------------------------------------------------


def _expect_reading(run: ClientRun) -> None:
    """Raise `NotTested` if the client lets our agent read nothing: then no answer is about the file."""
    if "error" in run.answer("read"):
        raise NotTested("the client did not read the file", "let it: --manual, or its own option for permissions")


@judge("ACP-CLIENT-701")
def file_is_read(run: ClientRun) -> None:
    _expect_reading(run)
    text = result_of(run.answer("read")).get("content")
    if text != TEXT:
        raise RowFailed(f"the file is read as {text!r}")


@judge("ACP-CLIENT-702")
def part_of_a_file_is_read(run: ClientRun) -> None:
    _expect_reading(run)
    text = result_of(run.answer("read_line")).get("content")
    if not isinstance(text, str) or text.rstrip("\n") != TEXT.splitlines()[1]:
        raise RowFailed(f"line 2, and one line, is read as {text!r}")


@judge("ACP-CLIENT-703")
def missing_file_is_an_error(run: ClientRun) -> None:
    _expect_error(run.answer("read_missing"), "a file that does not exist")


@judge("ACP-CLIENT-704")
def missing_file_has_its_code(run: ClientRun) -> None:
    _expect_reading(run)
    error = run.answer("read_missing").get("error")
    code = error.get("code") if isinstance(error, dict) else None
    if code != NOT_FOUND:
        raise RowFailed(f"a file that does not exist is answered with {code}, not with {NOT_FOUND}")


def _text_after(run: ClientRun, asked: str, file: str) -> Any:
    run.answer(asked)
    files = run.agent.answers.get("files")
    return files[file] if files else None


@judge("ACP-CLIENT-705")
def file_is_written(run: ClientRun) -> None:
    if "error" in run.answer("write"):
        raise NotTested("the client did not write the file", "let it: --manual, or its own option for permissions")
    if _text_after(run, "write", "existing") != WRITTEN:
        raise RowFailed("a file that was written does not have what was sent")


@judge("ACP-CLIENT-706")
def file_is_created(run: ClientRun) -> None:
    if "error" in run.answer("write"):
        raise NotTested("the client did not write the file", "let it: --manual, or its own option for permissions")
    if _text_after(run, "create", "created") != WRITTEN:
        raise RowFailed("a file that does not exist is not created")


@judge("ACP-CLIENT-707")
def files_outside_are_not_read(run: ClientRun) -> None:
    if result_of(run.answer("read_outside")).get("content") == SECRET:
        raise RowFailed("a file outside of the session's folder is read without a question")


@judge("ACP-CLIENT-708")
def files_outside_are_not_written(run: ClientRun) -> None:
    if _text_after(run, "write_outside", "target") is not None:
        raise RowFailed("a file outside of the session's folder is written without a question")


@judge("ACP-CLIENT-709")
def links_are_not_followed_out(run: ClientRun) -> None:
    if _text_after(run, "write_link", "linked") != SECRET:
        raise RowFailed("a link leads a write out of the session's folder")


@judge("ACP-CLIENT-710")
def relative_path_is_refused(run: ClientRun) -> None:
    _expect_error(run.answer("read_relative"), "a relative path")


@judge("ACP-CLIENT-711")
def unadvertised_files_are_refused(run: ClientRun) -> None:
    if run.can("fs", "readTextFile"):
        raise NotTested("the client lends files", is_unadvertised=True)
    _expect_error(run.answer("read"), "a file that is not lent")


@judge("ACP-CLIENT-713")
def files_of_an_unknown_session_are_refused(run: ClientRun) -> None:
    _expect_error(run.answer("read_for_another"), "a file for a session that does not exist")


# -- terminals ---------------------------------------------------------------------------------------------------------


def _output(run: ClientRun, name: str) -> str:
    created = run.answer(f"{name}_create")
    if "error" in created:
        raise NotTested("the client did not run the command", "let it: --manual, or its own option for permissions")
    return str(result_of(run.answer(f"{name}_output")).get("output"))


@judge("ACP-CLIENT-721")
def terminal_has_an_id_at_once(run: ClientRun) -> None:
    created = run.answer("killed_create")
    if "error" in created:
        raise NotTested("the client did not run the command", "let it: --manual, or its own option for permissions")
    if not result_of(created).get("terminalId"):
        raise RowFailed("terminal/create gives no terminalId")


@judge("ACP-CLIENT-722", "ACP-CLIENT-730")
def output_is_what_was_printed(run: ClientRun) -> None:
    if (text := _output(run, "short")) != "a b; echo c|$HOME|":
        raise RowFailed(f"the command printed its arguments, and its output is {text!r}")


@judge("ACP-CLIENT-723")
def exit_code_is_told(run: ClientRun) -> None:
    _output(run, "short")
    code = result_of(run.answer("short_exit")).get("exitCode")
    if code != 3:
        raise RowFailed(f"the command ended with 3, and the exit code is {code!r}")


@judge("ACP-CLIENT-724")
def output_after_the_end_has_a_status(run: ClientRun) -> None:
    _output(run, "short")
    status = result_of(run.answer("short_output")).get("exitStatus")
    if not isinstance(status, dict) or status.get("exitCode") != 3:
        raise RowFailed(f"the exit status of a command that ended with 3 is {status!r}")


@judge("ACP-CLIENT-725")
def output_is_cut_at_its_start(run: ClientRun) -> None:
    text = _output(run, "limited")
    if len(text.encode()) > LIMIT_BYTES + 1 or not text.endswith("Ä"):
        raise RowFailed(f"an output with a limit of {LIMIT_BYTES + 1} bytes is {text!r}")
    if result_of(run.answer("limited_output")).get("truncated") is not True:
        raise RowFailed("an output that was cut is not called truncated")


@judge("ACP-CLIENT-734")
def output_is_cut_between_characters(run: ClientRun) -> None:
    text = _output(run, "limited")
    if "�" in text or set(text) - {"Ä"}:
        raise RowFailed(f"a character is torn at the limit of an output: {text!r}")


@judge("ACP-CLIENT-729")
def command_has_its_folder_and_variables(run: ClientRun) -> None:
    text = _output(run, "place").strip()
    if not text.startswith("lent ") or not text.endswith("dragoman-check-sub"):
        raise RowFailed(f"the command shows its variable and folder as {text!r}")


@judge("ACP-CLIENT-726")
def killed_terminal_can_be_read(run: ClientRun) -> None:
    _output(run, "killed")
    for name in ("killed_kill", "killed_exit", "killed_output"):
        if "error" in run.answer(name):
            raise RowFailed("after terminal/kill its terminal is no longer known")


@judge("ACP-CLIENT-727")
def released_terminal_is_unknown(run: ClientRun) -> None:
    _output(run, "short")
    _expect_error(run.answer("released_output"), "the output of a terminal that was released")


@judge("ACP-CLIENT-728")
def released_command_is_ended(run: ClientRun) -> None:
    _output(run, "short")
    if run.answer("released_process").get("lives"):
        raise RowFailed("a command lives on after its terminal was released")


@judge("ACP-CLIENT-731")
def unadvertised_terminals_are_refused(run: ClientRun) -> None:
    if run.can("terminal"):
        raise NotTested("the client lends terminals", is_unadvertised=True)
    _expect_error(run.answer("short_create"), "a terminal that is not lent")


@judge("ACP-CLIENT-732")
def unknown_terminal_is_an_error(run: ClientRun) -> None:
    _expect_error(run.answer("unknown_terminal"), "a terminal that does not exist")


@judge("ACP-CLIENT-733")
def terminals_have_ids_of_their_own(run: ClientRun) -> None:
    _output(run, "short")
    ids = [result_of(run.answer(f"{name}_create")).get("terminalId") for name in ("killed", "released")]
    if ids[0] == ids[1]:
        raise RowFailed(f"two terminals have the id {ids[0]!r}")
