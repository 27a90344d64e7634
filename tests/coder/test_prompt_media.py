"""Pictures and sounds are checked when the prompt comes: a bad one is refused, and the session goes on without it."""

import base64
from pathlib import Path

import pytest

from dragoman.coder.context import ContextUserMessage, media_of
from dragoman.coder.models.contract import ModelRequest
from dragoman.errors import INVALID_PARAMS, RequestFailed
from dragoman.host import media
from dragoman.store.entries import NoteEntry
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import Audio, BlobResource, Content, Image, Resource, Text, text_of
from dragoman.vocabulary.events import AgentMessageChunk, Notice, ToolCallUpdate, UserMessage
from dragoman.vocabulary.requests import PromptRequest
from tests.coder.strict_model import StrictModel
from tests.coder.test_binary_files import Calling
from tests.support.whole_agent import scripted, whole

pytestmark = pytest.mark.anyio

PNG = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc000000301010"
        "0c9fe92ef0000000049454e44ae426082"
    )
).decode()
JPEG = base64.b64encode(b"\xff\xd8\xff\xe0 a photograph").decode()
LARGE = base64.b64encode(base64.b64decode(PNG) + bytes(media.MEDIA_BYTES)).decode()
HALF = base64.b64encode(base64.b64decode(PNG) + bytes(media.MEDIA_BYTES - 1000)).decode()

BAD: dict[str, tuple[list[Content], int, str]] = {
    "empty": ([Image("", "image/png")], 0, "the image is empty"),
    "not base64": ([Text("a"), Image("not base64!", "image/png")], 1, "the image is not valid base64"),
    "half of base64": ([Image(PNG[:-5], "image/png")], 0, "the image is not valid base64"),
    "lines of base64": ([Image(PNG[:60] + "\n" + PNG[60:], "image/png")], 0, "the image is not valid base64"),
    "no picture": (
        [Image("aGVsbG8=", "image/png")],
        0,
        "the image is declared as image/png, and its bytes are no picture",
    ),
    "wrong label": ([Image(PNG, "image/webp")], 0, "the image is declared as image/webp, and its bytes are image/png"),
    "other type": ([Image(PNG, "image/tiff")], 0, "the image is image/tiff; it must be PNG, JPEG, GIF or WebP"),
    "too large": ([Image(LARGE, "image/png")], 0, "the image has 5,242,949 bytes; the most is 5,242,880"),
    "too many": ([Image(PNG, "image/png")] * 200, 20, "the image is one too many; the most is 20"),
    "too large together": (
        [Image(HALF, "image/png")] * 3,
        2,
        "the image makes all of them together larger than 14,680,064 bytes",
    ),
    "sound": ([Text("a"), Audio("?", "audio/wav")], 1, "the audio is not valid base64"),
    "blob": (
        [Resource(BlobResource("?", "file:///x", "application/pdf"))],
        0,
        "the blob of the resource is not valid base64",
    ),
    "picture in a blob": (
        [Resource(BlobResource(JPEG, "file:///x", "image/png"))],
        0,
        "the blob of the resource is declared as image/png, and its bytes are image/jpeg",
    ),
}


@pytest.mark.parametrize("protocol", [1, 2])
@pytest.mark.parametrize(("prompt", "index", "reason"), BAD.values(), ids=BAD)
async def test_bad_media_are_refused_and_nothing_is_recorded(
    tmp_path: Path, protocol: int, prompt: list[Content], index: int, reason: str
) -> None:
    store = SqliteStore(tmp_path / "store")
    model = Calling()
    async with whole(tmp_path, model.make, store=store, protocol=protocol) as (_, session):
        with pytest.raises(RequestFailed) as refused:
            await session.prompt(prompt).read()
        entries = [record.entry async for records in store.read(session.id) for record in records]
        assert (await session.prompt("still there?").read()).text == "done"
    await store.close()
    assert (refused.value.code, refused.value.message) == (INVALID_PARAMS, f"prompt[{index}]: {reason}")
    assert refused.value.data == {"index": index}
    assert [
        entry
        for entry in entries
        if isinstance(entry, NoteEntry) or isinstance(getattr(entry, "event", None), UserMessage)
    ] == []
    assert [item.content for item in model.inquiries[0].items if isinstance(item, ContextUserMessage)] == [
        [Text("still there?")]
    ]


async def test_a_bad_picture_while_the_agent_works_is_refused_and_the_turn_goes_on(tmp_path: Path) -> None:
    wait = {"call": "bash", "input": {"command": "until test -e go; do sleep 0.01; done"}}
    said = []
    async with whole(tmp_path, scripted([wait, {"say": "b"}]), mode="full-access") as (client, session):
        async for event in session.prompt("go"):
            if isinstance(event, ToolCallUpdate) and event.status == "in_progress":
                with pytest.raises(RequestFailed, match=r"prompt\[0\]: the image is empty"):
                    await client.ask(PromptRequest(session.id, [Image("", "image/png")]))
                (tmp_path / "go").touch()
            said += [event.text] if isinstance(event, AgentMessageChunk) else []
    assert said == ["b"]


async def test_good_pictures_are_given_to_the_model_as_providers_spell_them(tmp_path: Path) -> None:
    model = Calling()
    model.sees = frozenset({"image"})
    prompt: list[Content] = [
        Image(PNG, "IMAGE/PNG"),
        Image(JPEG, "image/jpg"),
        Resource(BlobResource(JPEG, "file:///x.jpg", "image/jpg")),
        Resource(BlobResource(JPEG, "file:///x.bin")),
    ]
    async with whole(tmp_path, model.make) as (_, session):
        await session.prompt(prompt).read()
    (said,) = [item for item in model.inquiries[0].items if isinstance(item, ContextUserMessage)]
    assert said.content == [
        Image(PNG, "image/png"),
        Image(JPEG, "image/jpeg"),
        Image(JPEG, "image/jpeg"),
        Text("[resource: file:///x.bin]"),
    ]


async def test_a_model_without_eyes_is_given_a_marker_and_the_user_is_told(tmp_path: Path) -> None:
    model = Calling()
    async with whole(tmp_path, model.make) as (_, session):
        events = [event async for event in session.prompt([Image(PNG, "image/png")])]
    assert model.prompt == "[image: image/png]"
    notices = [event.title for event in events if isinstance(event, Notice)]
    assert notices == ["calling takes no images; it is only told that there is some."]


# -- all the media of a conversation ---------------------------------------------------------------------------------


def pictures_in(request: ModelRequest) -> list[tuple[str, int]]:
    """The messages with media, and how many blocks of it the model was shown."""
    return [
        (text_of(item.content)[:2], len(media_of(item)))
        for item in request.items
        if isinstance(item, ContextUserMessage) and media_of(item)
    ]


@pytest.mark.parametrize("protocol", [1, 2])
async def test_images_of_a_whole_conversation_stay_within_one_request(tmp_path: Path, protocol: int) -> None:
    model = StrictModel(*[[{"say": "seen"}]] * 4)
    notices = []
    async with whole(tmp_path, model.make, protocol=protocol) as (_, session):
        for name in ("p0", "p1", "p2"):
            turn = session.prompt([Text(name), *[Image(PNG, "image/png")] * 8])
            notices.append([event.title async for event in turn if isinstance(event, Notice)])
    assert pictures_in(model.asked[1]) == [("p0", 8), ("p1", 8)]
    assert pictures_in(model.asked[2]) == [("p0", 4), ("p1", 8), ("p2", 8)]
    marker = "[image/png left out here: the conversation has more images than a request can hold]"
    assert str(model.asked[2].items[0]).count(marker) == 4
    told = (
        "The model does not see the 4 oldest images of this conversation any more: a request holds 20 of them, and "
        "14 MiB in all. The session keeps them."
    )
    assert notices == [[], [], [told]]


async def test_large_images_of_a_whole_conversation_stay_within_one_request(tmp_path: Path) -> None:
    model = StrictModel(*[[{"say": "seen"}]] * 4)
    async with whole(tmp_path, model.make) as (_, session):
        for name in ("p0", "p1", "p2", "p3"):
            await session.prompt([Text(name), Image(HALF, "image/png")]).read()
    assert [pictures_in(request) for request in model.asked] == [
        [("p0", 1)],
        [("p0", 1), ("p1", 1)],
        [("p1", 1), ("p2", 1)],
        [("p2", 1), ("p3", 1)],
    ]
