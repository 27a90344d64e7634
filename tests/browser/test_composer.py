"""The prompt of the console: pictures and files, completion, what was sent before, and what fails is not lost."""

import asyncio
import base64
import struct
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.errors import RequestFailed
from dragoman.vocabulary.content import Image, Resource, Text
from dragoman.vocabulary.hello import AgentCapabilities
from tests.gateway.cutting import cutter
from tests.support.gateway import Served, free_port, gateway
from tests.support.waiting import until

from .chrome import ALT, Tab
from .conftest import Serve
from .measures import wcag_violations
from .test_page import enter, prompt

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]

IDLE = "document.querySelector('#transcript').dataset.state === 'idle'"
VALUE = "document.querySelector('#prompt').value"
ATTACHED = "[...document.querySelectorAll('.attached li')].map((one) => one.innerText.trim())"
DROP = """(([name, type, text]) => {{
    const data = new DataTransfer();
    data.items.add(new File([Uint8Array.from(atob(text), (one) => one.charCodeAt(0))], name, {{ type }}));
    const target = document.querySelector('#prompt');
    target.dispatchEvent(new {event}('{kind}', {{ {field}: data, bubbles: true, cancelable: true }}));
}})"""


def png(side: int) -> bytes:
    """A picture that no compression makes smaller."""
    rows = b"".join(b"\0" + bytes((x * y * 7919 + x) % 251 for x in range(side * 3)) for y in range(side))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 0)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


class Listener:
    """An agent that keeps the prompts it was sent, and fails the first one if it is told to."""

    def __init__(self, *, images: bool = True, fails: int = 0) -> None:
        capabilities = AgentCapabilities(embedded_context=True, image=images, close=True)
        self.agent = Agent("Listener", capabilities=capabilities)
        self.prompts: list[Prompt] = []

        @self.agent.prompt
        async def answer(session: Session, prompt: Prompt) -> None:
            self.prompts.append(prompt)
            if len(self.prompts) <= fails:
                raise RequestFailed(-32603, "The model is away")
            await session.say(f"Received {len(prompt.content)}.")


@pytest.fixture
async def listener(tmp_path: Path) -> AsyncIterator[tuple[Served, Listener]]:
    listening = Listener()
    async with gateway(listening.agent, tmp_path) as served:
        yield served, listening


async def attach(page: Tab, *files: Path) -> None:
    """By the button for files, in which a person would choose them."""
    await page.chrome.do(page.page.set_input_files("#files", [str(file) for file in files]))


async def test_pictures_and_files_are_attached_shown_and_sent(
    page: Tab, listener: tuple[Served, Listener], tmp_path: Path
) -> None:
    served, listening = listener
    (tmp_path / "a.png").write_bytes(png(20))
    (tmp_path / "notes.txt").write_text("rémember")
    (tmp_path / "unneeded.txt").write_text("no")
    (tmp_path / "program").write_bytes(b"\0\1\2")
    await enter(page, served)
    await attach(page, tmp_path / "a.png", tmp_path / "notes.txt", tmp_path / "unneeded.txt", tmp_path / "program")
    await page.until_text("#trouble", "program is neither text nor a picture")
    assert await page.js(ATTACHED) == ["a.png", "notes.txt", "unneeded.txt"]
    await page.click("[aria-label='Remove unneeded.txt']")
    await prompt(page, "look at these")
    await page.until_text(".message.agent", "Received 3.")
    text, image, file = listening.prompts[0].content
    assert text == Text("look at these")
    assert isinstance(image, Image) and base64.b64decode(image.data) == png(20)
    assert isinstance(file, Resource) and "rémember" in repr(file)
    assert await page.js(ATTACHED) == []
    await page.until("document.querySelector('.message.user img.image')?.naturalWidth === 20")


@pytest.mark.parametrize(
    ("event", "kind", "field"), [("ClipboardEvent", "paste", "clipboardData"), ("DragEvent", "drop", "dataTransfer")]
)
async def test_a_picture_can_be_pasted_and_dropped(
    page: Tab, listener: tuple[Served, Listener], event: str, kind: str, field: str
) -> None:
    served, listening = listener
    await enter(page, served)
    await page.until("document.querySelector('#link').textContent === ''")
    picture = base64.b64encode(png(8)).decode()
    await page.js(f"{DROP.format(event=event, kind=kind, field=field)}(['shot.png', 'image/png', '{picture}'])")
    await page.until(f"{ATTACHED}.length === 1")
    await page.click("#send")  # a picture needs no words
    await page.until_text(".message.agent", "Received 1.")
    (image,) = listening.prompts[0].content
    assert isinstance(image, Image) and base64.b64decode(image.data) == png(8)


async def test_an_agent_that_takes_no_pictures_is_sent_none(page: Tab, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(4))
    async with gateway(Listener(images=False).agent, tmp_path) as served:
        await enter(page, served)
        await page.until("document.querySelector('#link').textContent === ''")
        await attach(page, tmp_path / "a.png")
        await page.until_text("#trouble", "This agent takes no pictures")
        assert await page.js(ATTACHED) == []


async def test_a_connection_that_is_cut_in_the_middle_of_an_upload_loses_nothing(page: Tab, tmp_path: Path) -> None:
    listening, port = Listener(), free_port()
    picture = png(1000)  # 3 MB
    (tmp_path / "large.png").write_bytes(picture)
    async with (
        gateway(listening.agent, tmp_path, proxy_port=port) as served,
        cutter(served.server.port, port) as proxy,
    ):
        await page.go(f"http://127.0.0.1:{port}/#token={served.token}")
        await page.until("document.querySelector('#link')?.textContent === ''")
        await attach(page, tmp_path / "large.png")
        await page.until(f"{ATTACHED}.length === 1")
        begun = proxy.sent_bytes
        await prompt(page, "one")
        await until(lambda: proxy.sent_bytes > begun + 200_000, "that some of it has left")
        assert proxy.sent_bytes - begun < len(picture)  # and not all
        proxy.cut()
        await page.type("written meanwhile")
        await page.until_text(".message.agent", "Received 2.")
        await page.until(IDLE)
    (only,) = listening.prompts
    assert only.content[0] == Text("one")
    assert isinstance(only.content[1], Image) and base64.b64decode(only.content[1].data) == picture
    assert await page.js(VALUE) == "written meanwhile"


async def test_a_turn_that_failed_can_be_tried_again(page: Tab, tmp_path: Path) -> None:
    listening = Listener(fails=1)
    async with gateway(listening.agent, tmp_path) as served:
        await enter(page, served)
        await prompt(page, "go on")
        await page.until_text(".notice.error", "The model is away")
        await page.click(".notice .again")
        await page.until_text(".virtual-item:last-child .message.agent", "Received 1.")
    assert [one.text for one in listening.prompts] == ["go on", "go on"]


async def test_commands_are_completed_by_any_letters_and_the_arrow_up_brings_prompts_back(
    page: Tab, serve: Serve
) -> None:
    async with serve([{"say": "Heard."}]) as served:
        await enter(page, served)
        await prompt(page, "first")
        await page.until_text(".message.agent", "Heard.")
        await page.until(IDLE)
        await page.press("/")
        await page.until("document.querySelectorAll('#completion [role=option]').length > 2")
        active = "document.getElementById(document.querySelector('#prompt').getAttribute('aria-activedescendant'))"
        assert await page.js(f"{active} === document.querySelector('#completion [aria-selected=true]')")
        assert await wcag_violations(page) == []
        await page.type("mde")
        await page.until("document.querySelector('#completion [aria-selected=true]')?.innerText.startsWith('/mode')")
        await page.press("Tab")
        assert await page.js(VALUE) == "/mode "
        await page.until("document.querySelector('#completion').hidden")
        await page.press("Enter")
        await page.until_text(".virtual-item:last-child .message.agent", "The mode is")
        await page.until(IDLE)
        for expected in ("/mode ", "first"):
            await page.press("ArrowUp")
            assert (await page.js(VALUE)).strip() == expected.strip()
        await page.press("ArrowDown")
        await page.press("ArrowDown")
        assert await page.js(VALUE) == ""


async def test_files_of_the_folder_are_completed_part_by_part(page: Tab, tmp_path: Path) -> None:
    (tmp_path / "work" / "src").mkdir(parents=True)
    (tmp_path / "work" / "src" / "main.py").touch()
    listening = Listener()
    async with gateway(listening.agent, tmp_path) as served:
        await enter(page, served)
        await page.fill("#folder", str(tmp_path / "work"))
        await prompt(page, "first")
        await page.until_text(".message.agent", "Received 1.")
        await page.until(IDLE)
        await page.type("look at @s")
        await page.until_text("#completion [aria-selected=true]", "@src/")
        await page.press("Tab")
        await page.until_text("#completion [aria-selected=true]", "@src/main.py")
        await page.press("Enter")
        assert await page.js(VALUE) == "look at @src/main.py "


async def test_a_session_is_renamed_and_forked_from_its_menu(page: Tab, serve: Serve) -> None:
    async with serve([{"say": "Heard."}]) as served:
        await enter(page, served)
        await prompt(page, "first")
        await page.until_text(".message.agent", "Heard.")
        await page.until(IDLE)
        await page.click("#tools button")
        await page.chrome.do(page.page.get_by_role("menuitem", name="Rename").click())
        await page.fill("dialog input", "Another name")
        await page.press("Enter")
        await page.until_text("#title", "Another name")
        await page.until_text("#list", "Another name")
        shown = "document.querySelector('#list [aria-current=true]')?.dataset.session"
        forked = await page.js(shown)
        await page.click("#tools button")
        await page.chrome.do(page.page.get_by_role("menuitem", name="Fork").click())
        await page.until("document.querySelectorAll('#list li').length === 2")
        await page.until(f"({shown} ?? '{forked}') !== '{forked}'")
        await page.until_text(".message.agent", "Heard.")
        assert await page.text(".message.user") == "first"


@pytest.mark.parametrize("how", ["ends", "is stopped"])
async def test_what_is_sent_to_an_agent_that_takes_no_second_prompt_waits_for_its_turn(
    page: Tab, tmp_path: Path, how: str
) -> None:
    agent, go_on, heard = Agent("Single"), asyncio.Event(), list[str]()

    @agent.prompt
    async def answer(session: Session, prompt: Prompt) -> None:
        heard.append(prompt.text)
        await session.say("Working.")
        await go_on.wait()
        await session.say(f"Done with {prompt.text}.")

    async with gateway(agent, tmp_path) as served:
        await enter(page, served)
        await prompt(page, "one")
        await page.until_text(".message.agent", "Working.")
        await prompt(page, "two")
        await page.until_text(".message.queued", "two")
        assert await page.js("document.querySelector('#trouble').hidden") is True
        if how == "ends":
            go_on.set()
            await page.until_text(".virtual-item:last-child .message.agent", "Done with two.")
            assert heard == ["one", "two"]
        else:
            await page.click("#stop")
            await page.until_text("#trouble", "was not sent")
            assert await page.js(VALUE) == "two"
            assert heard == ["one"]


@pytest.mark.parametrize("how", ["Enter", "the button", "Alt and Enter"])
async def test_what_is_said_while_the_agent_works_joins_the_turn_or_waits_for_its_end(
    page: Tab, tmp_path: Path, how: str
) -> None:
    agent, go_on, heard = Agent("Steered", steering=True), asyncio.Event(), list[tuple[str, list[str]]]()

    @agent.prompt
    async def answer(session: Session, prompt: Prompt) -> None:
        await session.say("Working.")
        await go_on.wait()
        added = [one.text for one in await session.queued_prompts()]
        heard.append((prompt.text, added))
        await session.say(f"Done with {', '.join([prompt.text, *added])}.")

    async with gateway(agent, tmp_path) as served:
        await enter(page, served)
        await prompt(page, "one")
        await page.until_text(".message.agent", "Working.")
        await page.type("two")
        if how == "the button":
            await page.click("#later")
        else:
            await page.press("Enter", ALT if how == "Alt and Enter" else 0)
        is_added = how == "Enter"
        await page.until_text(".message.queued", "is added to the turn" if is_added else "waits until the agent")
        assert await wcag_violations(page) == []
        go_on.set()
        last = "Done with one, two." if is_added else "Done with two."
        await page.until_text(".virtual-item:last-child .message.agent", last)
        assert heard == ([("one", ["two"])] if is_added else [("one", []), ("two", [])])
        await page.until("!document.querySelector('.message.queued')")
        assert await page.js("[...document.querySelectorAll('.message.user .text')].map((one) => one.innerText)") == [
            "one",
            "two",
        ]


async def test_a_prompt_joins_the_turn_of_a_session_that_stands_beside_others_too(page: Tab, tmp_path: Path) -> None:
    agent, go_on = Agent("Steered", steering=True), asyncio.Event()

    @agent.prompt
    async def answer(session: Session, prompt: Prompt) -> None:
        await session.say("Working.")
        await go_on.wait()
        added = [one.text for one in await session.queued_prompts()]
        await session.say(f"Done with {', '.join([prompt.text, *added])}.")

    async with gateway(agent, tmp_path) as served:
        await enter(page, served)
        await prompt(page, "one")
        await page.until_text(".message.agent", "Working.")
        await page.js("location.hash = location.hash.replace('session/', 'beside/')")
        await page.fill(".beside textarea", "two")
        await page.press("Enter")
        await page.until_text(".beside .queued", "is added to the turn")
        go_on.set()
        await page.until_text(".beside .story", "Done with one, two.")
        await page.until("!document.querySelector('.beside .queued')")
