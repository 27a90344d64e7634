"""The options of `dragoman run` that a script chooses by: JSON, sessions, pictures, folders, limits, a schema."""

import json
from pathlib import Path

import pytest

from tests.support import rogue_agent
from tests.support.rogue_agent import text
from tests.support.run_command import Step, run, scripted

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360f8cfc000000003000101a4d5bb9a0000000049454e44ae426082"
)
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


def schema(folder: Path, value: object = SCHEMA) -> str:
    file = folder / "schema.json"
    file.write_text(json.dumps(value))
    return str(file)


def test_json_is_one_object_with_the_answer_and_what_was_done(tmp_path: Path) -> None:
    steps: list[Step] = [
        {"say": "Hello."},
        {"call": "write_file", "input": {"path": "b.txt", "content": "new\n"}},
        {"call": "edit_file", "input": {"path": "b.txt", "edits": [{"old_text": "new", "new_text": "newer"}]}},
        {"say": "Done."},
        {"usage": {"input": 3, "output": 4}},
    ]
    done = run(tmp_path, "hi", *scripted(tmp_path, steps), "--allow", "edit", "--json")
    assert done.code == 0, done
    (told,) = done.events
    session = told.pop("sessionId")
    assert session.startswith("sess_")
    assert told == {
        "text": "Hello.Done.",
        "stopReason": "end_turn",
        "usage": {"totalTokens": 7, "inputTokens": 3, "outputTokens": 4},
        "cost": None,
        "denied": [],
        "files": [{"path": str(tmp_path / "b.txt"), "operation": "add"}],
    }


def test_json_tells_a_failure_and_what_was_denied(tmp_path: Path) -> None:
    steps: list[Step] = [{"call": "write_file", "input": {"path": "b.txt", "content": "new\n"}}, {"fail": "rate_limit"}]
    done = run(tmp_path, "hi", *scripted(tmp_path, steps), "--json")
    (told,) = done.events
    assert (done.code, told["stopReason"], told["files"]) == (6, "error", [])
    assert "b.txt" in told["denied"][0]["what"]
    assert told["error"]["message"]


def test_former_spellings_work_and_are_said(tmp_path: Path) -> None:
    options = scripted(tmp_path, [{"say": "One."}])
    first = run(tmp_path, "hi", *options, "--format", "json")
    assert "--format is written --stream-json now" in first.error
    session = first.events[-1]["sessionId"]
    second = run(tmp_path, "hi", *options, "--session", session)
    assert (second.code, second.out) == (0, "One.\n")
    assert "--session is written --resume now" in second.error


def test_continue_goes_on_with_the_newest_session_of_the_folder(tmp_path: Path) -> None:
    options = scripted(tmp_path, [{"say": "One."}])
    session = run(tmp_path, "hi", *options, "--json").events[0]["sessionId"]
    for word in ("--continue", "--resume="):
        again = run(tmp_path, "and?", *options, word, "--json")
        assert again.events[0]["sessionId"] == session
    nowhere = run(tmp_path, "hi", *options, "--continue", "--cwd", str(tmp_path / "home"))
    assert (nowhere.code, nowhere.out) == (2, "")
    assert "there is no session of this folder" in nowhere.error


def test_a_prompt_that_was_taken_for_a_session_is_said(tmp_path: Path) -> None:
    done = run(tmp_path, "--resume", "say hello")
    assert done.code == 2
    assert "'say hello' was taken as a session; write --resume=NAME PROMPT" in done.error


def test_short_options_are_the_long_ones(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (model,) = scripted(tmp_path, [{"call": "list_files", "input": {}}, {"say": "Hi."}])[1:]
    done = run(tmp_path, "hi", "-m", model, "-C", str(work), "--stream-json")
    assert done.code == 0, done


def test_a_picture_and_a_further_folder_go_to_the_agent(tmp_path: Path) -> None:
    (tmp_path / "a picture.png").write_bytes(PIXEL)
    further = tmp_path / "further"
    further.mkdir()
    (further / "f.txt").write_text("from afar")
    steps: list[Step] = [{"call": "read_file", "input": {"path": str(further / "f.txt")}}]
    done = run(
        tmp_path,
        "look",
        *scripted(tmp_path, steps),
        "--image",
        "a picture.png",
        "--add-dir",
        "further",
        "--stream-json",
    )
    assert done.code == 0, done
    assert "from afar" in done.out
    prompt = [event for event in done.events if event["type"] == "user_message"]
    assert [block["type"] for block in prompt[0]["content"]] == ["text", "image"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--image", "nothing.png"], "'nothing.png' is no file"),
        (["--add-dir", "nothing"], "'nothing' is no folder"),
        (["--max-turns", "0"], "'0' is not a number from 1 on"),
        (["--system-prompt-file", "nothing"], "No such file"),
        (["--output-schema", "nothing"], "No such file"),
        (["--json", "--stream-json"], "not allowed with"),
        (["--resume", "x", "--continue"], "not allowed with"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_sent(options: list[str], complaint: str, tmp_path: Path) -> None:
    done = run(tmp_path, "hi", *options)
    assert done.code == 2
    assert complaint in done.error


def test_a_turn_ends_after_so_many_model_requests(tmp_path: Path) -> None:
    call = {"call": "list_files", "input": {}}
    done = run(tmp_path, "hi", *scripted(tmp_path, [call, {"say": "Never."}]), "--max-turns", "1", "--json")
    assert (done.code, done.events[0]["stopReason"]) == (4, "max_turn_requests")


@pytest.mark.parametrize("option", ["--max-turns=2", "--system-prompt-file=x"])
def test_what_our_own_agent_alone_knows_is_refused_for_another(option: str, tmp_path: Path) -> None:
    done = run(tmp_path, "hi", option, "--", *rogue_agent.written(tmp_path, text("ok")))
    assert done.code == 2
    assert "is for Dragoman's own agent alone" in done.error


# -- a schema ------------------------------------------------------------------------------------------------------


def test_an_answer_that_fits_the_schema_is_printed_alone(tmp_path: Path) -> None:
    steps: list[Step] = [
        {"say": "I look."},
        {"call": "list_files", "input": {}},
        {"say": 'So:\n```json\n{"n": 3}\n```'},
    ]
    done = run(tmp_path, "how many?", *scripted(tmp_path, steps), "--output-schema", schema(tmp_path))
    assert (done.code, done.out) == (0, '{"n":3}\n')


def test_an_agent_is_told_what_does_not_fit_and_asked_again(tmp_path: Path) -> None:
    options = scripted(tmp_path, [{"say": '{"n": "three"}'}], [{"say": '{"n": 3}'}])
    file = schema(tmp_path)
    done = run(tmp_path, "how many?", *options, "--output-schema", file, "--json")
    assert (done.code, done.events[0]["output"]) == (0, {"n": 3})
    streamed = run(tmp_path, "how many?", *options, "--output-schema", file, "--stream-json")
    assert streamed.events[-1]["output"] == {"n": 3}
    first, second = (event["content"][0]["text"] for event in streamed.events if event["type"] == "user_message")
    assert '"additionalProperties": false' in first
    assert "'three' is not of type 'integer'" in second


def test_an_answer_that_never_fits_is_an_error(tmp_path: Path) -> None:
    answers: list[list[Step]] = [[{"say": "Three."}]] * 4
    options = [*scripted(tmp_path, *answers), "--output-schema", schema(tmp_path), "--stream-json"]
    done = run(tmp_path, "how many?", *options)
    assert done.code == 6
    assert [event["type"] for event in done.events].count("user_message") == 3
    assert "the last message is no JSON value alone" in done.events[-1]["error"]["message"]
    assert "output" not in done.events[-1]


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ([], "a schema is a JSON object"),
        ({"type": "thing"}, "this is no JSON schema"),
        ("x", "a schema is a JSON object"),
    ],
)
def test_a_bad_schema_is_refused(value: object, complaint: str, tmp_path: Path) -> None:
    done = run(tmp_path, "hi", "--output-schema", schema(tmp_path, value))
    assert done.code == 2
    assert complaint in done.error


def test_a_schema_that_names_another_place_fetches_nothing(tmp_path: Path) -> None:
    elsewhere = schema(tmp_path, {"$ref": "http://127.0.0.1:9/schema.json"})
    done = run(tmp_path, "hi", *scripted(tmp_path, [{"say": "3"}]), "--output-schema", elsewhere)
    assert done.code == 2
    assert "nothing is fetched" in done.error
