"""The page in a real browser: what a person sees and does. Pictures are left in build/browser."""

import asyncio
import re
import signal
import socket
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from dragoman.gateway import hub
from tests.support.gateway import Served, counting, gateway
from tests.support.needs import ROOT
from tests.support.waiting import until

from .chrome import ALT, Chrome, Tab, tab
from .conftest import Serve

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]

PLAN = [
    {"content": "Change the file", "status": "in_progress", "priority": "high"},
    {"content": "Run it", "status": "pending", "priority": "low"},
]
EDIT = {"call": "edit_file", "input": {"path": "a.txt", "old_string": "two", "new_string": "TWO"}}


def address(served: Served, fragment: str = "") -> str:
    return f"http://127.0.0.1:{served.server.port}/{fragment}"


async def enter(page: Tab, served: Served) -> None:
    """By the link with the token."""
    await page.go(address(served, f"#token={served.token}"))
    await page.until_text("#title", "New session")


async def prompt(page: Tab, text: str) -> None:
    await page.click("#prompt")
    await page.type(text)
    await page.press("Enter")


async def test_login_and_a_turn_that_edits_and_runs(page: Tab, serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "work" / "a.txt").write_text("one\ntwo\n")
    command = "echo begun; until test -e go; do sleep 0.02; done; printf '\\033[31mred\\033[0m end\\n'"
    steps = [
        {"think": "Let me look. "},
        {"say": "I will make a **plan**."},
        {"call": "update_plan", "input": {"entries": PLAN}},
        EDIT,
        {"say": "Now it runs."},
        {"call": "bash", "input": {"command": command}},
        {"say": "Done."},
        {"usage": {"input": 12, "output": 34, "cost": 0.0125}},
    ]
    async with serve(steps, window=1000) as served:
        await page.go(address(served))
        await page.until("!document.querySelector('#login').hidden")
        await page.type("wrong")
        await page.press("Enter")
        await page.until_text("#login-trouble", "does not know this token")
        await page.js("document.querySelector('#token').value = ''")
        await page.type(served.token)
        await page.press("Enter")
        await page.until_text("#title", "New session")
        assert await page.js("document.querySelectorAll('#list li, #options select').length") == 0  # nothing said yet
        assert await page.js("document.cookie") == ""  # no script can read it
        assert await page.js("document.querySelector('#folder').value") == str(tmp_path / "work")

        await prompt(page, "please go on")
        await page.until_text(".message.user", "please go on")
        await page.until("document.querySelector('.message.agent strong')?.innerText === 'plan'")
        assert await page.js("document.querySelector('.thought .text').textContent") == "Let me look."
        await page.until_text("#plan", "Plan 0/2")
        assert await page.js("[...document.querySelectorAll('.step')].map((step) => step.className)") == [
            "step in_progress",
            "step pending",
        ]

        # By a click, when the moment is over in which a click may have been meant for something else.
        await page.until_text("#question .patch .added", "+TWO")
        assert str(tmp_path / "work" / "a.txt") in await page.text("#question .path")
        assert "please go on" in await page.text("#list")  # the session has its name, also in the list
        assert (tmp_path / "work" / "a.txt").read_text() == "one\ntwo\n"
        await page.picture("permission")
        await page.click("#question [data-option=allow_once]")
        await page.until(
            "document.querySelector('.call[data-status=completed] .patch .removed')?.innerText === '-two\\n'"
        )

        # By the keyboard alone.
        await page.until_text("#question pre.exact", command)
        assert (tmp_path / "work" / "a.txt").read_text() == "one\nTWO\n"
        await page.until("!document.querySelector('#question .choice').disabled")
        await page.press("1", ALT)
        await page.until_text(".screen", "begun")  # while it runs
        assert await page.js("document.querySelector('#stop').hidden") is False
        (tmp_path / "work" / "go").touch()
        await page.until_text(".screen", "red end")
        assert "\x1b" not in await page.text(".screen")
        await page.until_text("#usage", "12 in, 34 out · 5 % of the window · $0.0125")
        assert await page.text("#title") == "please go on"
        assert await page.js("document.querySelector('#stop').hidden") is True
        await page.until_text("#list [aria-current=true]", "please go on")
        await page.picture("conversation")


WORDS: dict[str, object] = {"say": "word ", "repeat": 40, "delay_ms": 25}
ALL_WORDS = ("word " * 40).strip()


async def test_text_streams_and_escape_stops_it(page: Tab, serve: Serve) -> None:
    async with serve([{"say": "word ", "repeat": 2000, "delay_ms": 20}], [{"say": "Again."}]) as served:
        await enter(page, served)
        await prompt(page, "count")
        await page.until_text(".message.agent", "word word word")
        await page.press("Escape")
        await page.until_text(".notice", "Stopped.")
        await prompt(page, "go on")
        await page.until_text(".virtual-item:last-child .message.agent", "Again.")


async def test_mode_and_model_are_chosen_and_a_refused_choice_is_not_shown(page: Tab, serve: Serve) -> None:
    async with serve([EDIT, {"say": "Done."}]) as served:
        await enter(page, served)
        await page.click("#make")
        await page.until("document.querySelector('#options select')")
        choose = "((name, value) => {{ const list = document.querySelector(`[data-option=${{name}}]`);"
        choose += " list.value = value; list.dispatchEvent(new Event('change')); }})('{}', '{}')"
        await page.js(choose.format("mode", "read-only"))
        await prompt(page, "/mode")
        await page.until_text(".message.agent", "read-only")
        assert await page.js("document.querySelector('[data-option=mode]').value") == "read-only"
        model = "document.querySelector('[data-option=model]')"
        assert await page.js(f"[...{model}.options].map((option) => option.value)") == ["script", ""]
        # In one step of the page: what it draws meanwhile would put the value back.
        await page.js(f"{model}.options[0].value = 'another', {choose.format('model', 'another')}")
        await page.until_text("#trouble", "There is no model another.")
        await page.until(f"{model}.value === 'script'")


async def test_a_model_that_is_not_listed_is_named_in_a_field_and_asked_for(page: Tab, serve: Serve) -> None:
    async with serve([{"say": "Done."}]) as served:
        await enter(page, served)
        await page.click("#make")
        await page.until("document.querySelector('[data-option=model]')")
        model = "document.querySelector('[data-option=model]')"
        another = f"(() => {{ const list = {model}; list.value = ''; list.dispatchEvent(new Event('change')); }})()"
        await page.js(another)
        await page.press("Escape")
        assert await page.js(f"{model}.value") == "script"
        await page.js(another)
        await page.js("document.querySelector('[data-named=model]').value = ' ollama/not-listed '")
        await page.press("Enter")
        await page.until(f"{model}?.value === 'ollama/not-listed'")
        await prompt(page, "go")
        await page.until_text("#trouble", "There is no model ollama/not-listed.")  # the agent of these tests has one
        await page.until(f"{model}?.value === 'script'")
        assert await page.js("document.querySelector('#prompt').value") == "go"  # nothing was sent to another model


async def test_a_question_spells_out_a_file_that_looks_like_another(page: Tab, serve: Serve) -> None:
    twin = "test\ufe0f.sh"
    plan = [{"content": f"Run {twin} \N{HEAVY CHECK MARK}\ufe0f", "status": "pending", "priority": "low"}]
    steps = [
        {"call": "update_plan", "input": {"entries": plan}},
        {"call": "bash", "input": {"command": f"sh ./{twin}"}},
    ]
    async with serve([*steps, {"say": "Done."}]) as served:
        await enter(page, served)
        await prompt(page, f"run {twin}")
        await page.until_text("#question-title", "sh ./test\\ufe0f.sh")
        assert await page.text("#question .exact") == "sh ./test⟨U+FE0F⟩.sh"
        options = await page.js(
            "[...document.querySelectorAll('#question [data-option]')].map((one) => one.dataset.option)"
        )
        assert options == ["allow_once", "reject_once"]
        assert await page.text("#title") == "run test⟨U+FE0F⟩.sh"
        await page.click("#plan summary")  # folded while there is a question
        await page.until_text("#plan li", twin[-3:])
        assert await page.text("#plan li") == "Run test\\ufe0f.sh \N{HEAVY CHECK MARK}\ufe0f"
        await page.click("#question [data-option=reject_once]")
        await page.until_text(".message.agent", "Done.")


async def test_a_question_of_the_agent_is_a_form(page: Tab, serve: Serve) -> None:
    asked = {"call": "ask_user", "input": {"question": "Which one?", "options": ["red", "blue"]}}
    async with serve([asked, {"say": "Thank you."}]) as served:
        await enter(page, served)
        await prompt(page, "ask me")
        await page.until_text("#question", "Which one?")
        await page.js("document.querySelector('#question select').value = 'blue'")
        await page.click("#question .choice.allow")
        await page.until_text(".message.agent", "Thank you.")
        await page.click(".call summary")
        await page.until_text(".call", "blue")


async def test_a_reload_finds_the_turn_and_its_question_again(page: Tab, serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "work" / "a.txt").write_text("two\n")
    async with serve([{"think": "Hm. "}, {"say": "First. "}, EDIT, WORDS]) as served:
        await enter(page, served)
        await prompt(page, "go")
        await page.until_text("#question", "Edit a.txt")
        await page.reload()
        await page.until_text("#question .patch", "+TWO")
        await page.until_text(".message.agent", "First.")
        assert await page.text(".message.user") == "go"
        assert len(served.hub.connections) == 1  # it goes on
        await page.click("#question [data-option=allow_once]")
        await page.until_text(".virtual-item:last-child .message.agent", "word word")
        await page.reload()  # while it speaks
        await page.until("document.querySelector('#transcript').dataset.state === 'idle'")
        assert await page.text(".virtual-item:last-child .message.agent") == ALL_WORDS
        assert await page.js("document.querySelector('#question').hidden") is True  # it was answered
        assert await page.js("document.querySelectorAll('.item').length") == 5
        await page.js("sessionStorage.clear()")
        await page.reload()  # and with a new connection, from what is stored
        await page.until_text(".virtual-item:last-child .message.agent", ALL_WORDS)
        assert await page.text(".message.user") == "go"
        assert await page.js("document.querySelectorAll('.item').length") == 5
        assert await page.text("#title") == "go"


async def test_a_dropped_connection_loses_and_repeats_nothing(page: Tab, serve: Serve) -> None:
    async with serve([WORDS], [{"say": "word ", "repeat": 40}]) as served:
        await enter(page, served)
        await prompt(page, "go")
        for count in (3, 12, 25):
            await page.until(f"document.querySelector('.message.agent')?.innerText.split(' ').length > {count}")
            (client_side,) = served.hub.connections.values()
            client_side.connection.main.close(1001)
        await page.until("document.querySelector('#transcript').dataset.state === 'idle'")
        assert await page.text(".message.agent") == ALL_WORDS
        assert len(served.hub.connections) == 1
        # The server forgets the connection: the story is told again, in a new one.
        await served.hub.connections.close(client_side, with_work=False)
        await until(lambda: [one.connection.readers for one in served.hub.connections.values()] == [1])
        await page.until("document.querySelector('#transcript').dataset.state === 'idle'")
        await prompt(page, "again")
        await page.until("document.querySelectorAll('.message.agent').length === 2")
        await page.until("document.querySelector('#transcript').dataset.state === 'idle'")
        said = await page.js("[...document.querySelectorAll('.message.agent')].map((one) => one.innerText.trim())")
        assert said == [ALL_WORDS] * 2


async def test_another_tab_joins_a_running_turn_and_may_answer(
    page: Tab, chrome: Chrome, serve: Serve, tmp_path: Path
) -> None:
    (tmp_path / "work" / "a.txt").write_text("two\n")
    turns = [{"say": "Earlier."}], [{"say": "First. "}, EDIT, {"say": "Last."}]
    async with serve(*turns) as served, tab(chrome) as other:
        await enter(page, served)
        await prompt(page, "begin")
        await page.until_text(".message.agent", "Earlier.")
        await page.until("document.querySelector('#transcript').dataset.state === 'idle'")
        await prompt(page, "go")
        await page.until_text("#question", "Edit a.txt")
        await enter(other, served)
        await other.click("#list li:last-child a")
        await other.until_text(".notice", "A turn is running.")
        await other.until_text("#question .patch", "+TWO")
        await other.click("#question [data-option=reject_once]")
        await page.until("document.querySelector('#question').hidden")  # there is nothing left to answer
        for one in (page, other):
            await one.until("document.querySelectorAll('.message.agent').length === 3")
            await one.until_text(".virtual-item:last-child .message.agent", "Last.")
            assert await one.text(".message.agent") == "Earlier."
            assert await one.js("document.querySelectorAll('.notice').length") == 0
        assert (tmp_path / "work" / "a.txt").read_text() == "two\n"


HOSTILE = """<img src=x onerror="window.pwned = 1"> </script><script>window.pwned = 2</script>

[click me](javascript:window.pwned=3) and [data](data:text/html,<script>window.pwned=4</script>)

**<b>bold</b>** `<i>code</i>` https://example.org/"onmouseover="window.pwned=5

```html
</code></pre><img src=x onerror="window.pwned = 6">
```

# <h1>head</h1>

- <svg onload="window.pwned = 7">

<div id="question" style="position:fixed;inset:0;z-index:9">Allow?<button>Allow once</button></div>
"""


# One that the console has not made.
BUTTON = "button:not(.button, .copy-button)"


async def test_hostile_text_stays_text(page: Tab, serve: Serve) -> None:
    sly = "echo safe \u202e; rm -rf /\u202c \x1b[2K\x1b[1A# <img src=x onerror='window.pwned = 8'>"
    steps = [
        {"say": HOSTILE},
        {"think": HOSTILE},
        {"call": "update_plan", "input": {"entries": [{"content": HOSTILE, "status": "pending", "priority": "low"}]}},
        {"call": "bash", "input": {"command": sly}},
    ]
    async with serve(steps) as served:
        await enter(page, served)
        await prompt(page, HOSTILE)
        await page.until_text("#question pre.exact", "rm -rf")
        shown = await page.js("document.querySelector('#question pre.exact').textContent")
        assert shown == sly.replace("\u202e", "⟨U+202E⟩").replace("\u202c", "⟨U+202C⟩").replace("\x1b", "⟨U+001B⟩")
        transcript = "document.querySelector('#transcript')"
        said = "document.querySelector('.message.agent')"
        # Text is drawn with the next frame of the browser, a question at once.
        await page.until(f"{said}?.innerText.includes('<img src=x onerror=\"window.pwned = 1\">')")
        await page.until(f"{transcript}.querySelectorAll('a').length === 2")
        assert (
            await page.js(f"{transcript}.querySelectorAll('img, script, svg:not(.icon), {BUTTON}, b, i, style').length")
            == 0
        )
        assert (
            await page.js(f"[...{transcript}.querySelectorAll('a')].map((a) => [a.protocol, a.rel])")
            == [["https:", "noopener noreferrer nofollow"]] * 2
        )  # once said, once thought
        assert await page.js("document.querySelectorAll('#question').length") == 1
        assert await page.js("window.pwned === undefined")
        await page.picture("hostile")
        await page.click("#question [data-option=reject_once]")
        await page.until("document.querySelector('#transcript').dataset.state === 'idle'")
        assert await page.js("window.pwned === undefined")


BLANK = (
    "\u034f\u00a0\u3000\U0001d173\U0001bca0\u3164\u115f\u1160\uffa0\u2800\ufe00\ufe0f\U000e0100\U000e01ef\u200b\u2066"
)


async def test_what_is_to_be_judged_is_seen_without_scrolling_sideways(page: Tab, serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "work" / "a.txt").write_text("two\n")
    edit = {**EDIT, "input": {**EDIT["input"], "new_string": "safe" + " " * 900 + "rm -rf /" + "x" * 900 + BLANK}}  # type: ignore[dict-item]
    async with serve([edit, {"call": "bash", "input": {"command": "touch " + "y" * 900}}]) as served:
        await enter(page, served)
        await prompt(page, "go")
        for what in ("#question .patch .line.added", "#question pre.exact"):
            await page.until(f"document.querySelector('{what}')")
            wider = "(element) => element.scrollWidth > element.clientWidth"
            assert await page.js(f"[...document.querySelectorAll('#question *')].filter({wider}).length") == 0
            if "patch" in what:
                shown = await page.js(f"document.querySelector('{what}').textContent")
                assert shown.endswith("".join(f"⟨U+{ord(one):04X}⟩" for one in BLANK) + "\n")
            await page.click("#question [data-option=reject_once]")


@pytest.mark.slow
async def test_on_a_telephone_nothing_is_wider_than_the_screen(page: Tab, serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "work" / "a.txt").write_text("two" + " long" * 100 + "\n")
    wide = "https://example.org/" + "x" * 300 + " " + "w" * 300 + "\n\n```\n" + "code " * 100 + "\n```\n"
    await page.resize(390, 800)
    await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    fits = "document.documentElement.scrollWidth <= innerWidth && document.body.scrollWidth <= innerWidth"
    async with serve([{"say": wide}, EDIT, {"call": "bash", "input": {"command": "touch " + "y" * 400}}]) as served:
        await page.go(address(served))
        await page.until(f"!document.querySelector('#login').hidden && {fits}")
        await enter(page, served)
        await page.until(fits)
        await page.click("#prompt")
        await page.type("go " + "z" * 300)
        await page.click("#send")
        await page.until_text("#question", "Edit a.txt")
        await page.until(fits)
        assert await page.js("document.querySelector('#transcript').scrollWidth <= innerWidth")
        end = "(({ scrollTop, clientHeight, scrollHeight }) => scrollTop + clientHeight >= scrollHeight - 2)"
        await page.until(f"{end}(document.querySelector('#transcript'))")  # its end is seen, above the question
        await page.picture("telephone")
        await page.click("#question [data-option=allow_once]")
        await page.until_text("#question pre.exact", "yyy")
        await page.click("#question [data-option=allow_once]")
        await page.until("document.querySelector('#transcript').dataset.state === 'idle'")
        await page.until_text(".screen", "yyy")
        await page.until(fits)
        await page.picture("telephone-dark")
        await page.click("#menu")
        await page.until_text("#list", "go zzz")
        await page.until(fits)
        await page.click("#make")
        await page.until_text("#title", "New session")


@pytest.mark.slow
async def test_the_end_is_followed_after_a_question_until_the_user_scrolls_up(page: Tab, serve: Serve) -> None:
    long = {"say": "line\n\n", "repeat": 60}
    slow = {"say": "more\n\n", "repeat": 20, "delay_ms": 10}
    asked = {"call": "bash", "input": {"command": "touch x"}}
    turn = [long, asked, slow, asked, long]
    end = "(({ scrollTop, clientHeight, scrollHeight }) => scrollTop + clientHeight >= scrollHeight - 2)"
    at_the_end = f"{end}(document.querySelector('#transcript'))"
    async with serve(turn) as served:
        await enter(page, served)
        await prompt(page, "go")
        for _ in range(2):
            await page.click("#question [data-option=allow_once]")
            await page.until("document.querySelector('#question').hidden")
            # The panel closes while text comes: the transcript moves, and the user has not moved it.
            await page.js(
                "(() => { const one = document.querySelector('#transcript'); one.scrollTop -= 100;"
                " one.dispatchEvent(new Event('scroll')); })()"
            )
        await page.until("document.querySelector('#transcript').dataset.state === 'idle'")
        await page.until(at_the_end)
        await page.call("Input.dispatchMouseEvent", type="mouseWheel", x=600, y=200, deltaX=0, deltaY=-900)
        await page.until(f"!{at_the_end}")
        await prompt(page, "again")  # who says something looks at the end again
        await page.until_text("#question", "touch x")
        await page.until(at_the_end)
        await page.call("Input.dispatchMouseEvent", type="mouseWheel", x=600, y=100, deltaX=0, deltaY=-900)
        await page.until(f"!{at_the_end}")
        await page.click("#question [data-option=allow_once]")
        await page.until_text("#question", "touch x")
        assert await page.js(at_the_end) is False


@pytest.mark.slow
async def test_on_a_narrow_screen_mode_and_model_can_be_read(page: Tab, serve: Serve) -> None:
    await page.resize(380, 800)
    counted = [{"say": "hi"}, {"usage": {"input": 123456, "output": 34567}}]
    async with serve(counted, [{"say": "word ", "repeat": 2000, "delay_ms": 20}], window=200000) as served:
        await enter(page, served)
        for text in ("go", "and on"):
            await page.click("#prompt")
            await page.type(text)
            await page.click("#send")
            await page.until_text("#usage", "123k in")
        await page.until("!document.querySelector('#stop').hidden")
        widths = await page.js("[...document.querySelectorAll('#options select')].map((one) => one.offsetWidth)")
        assert min(widths) > 60, widths


@pytest.mark.slow
async def test_a_login_that_has_ended_says_why_and_keeps_what_was_written(
    page: Tab, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "_SWEEP_SECONDS", 0.1)
    async with serve([{"say": "Heard."}]) as served:
        await enter(page, served)
        await page.click("#make")
        await page.until("document.querySelector('#options select')")
        await page.click("#prompt")
        await page.type("not heard")
        await page.js("WebSocket.prototype.send = () => {}")  # the gateway is gone, which the page does not know yet
        await page.press("Enter")
        await page.type("not sent")
        assert served.tokens.revoke("default")
        await page.until_text("#login-trouble", "Your login has ended")
        await page.reload()
        await page.until_text("#login-trouble", "Log in again")
        await page.type(served.tokens.make("default"))
        await page.press("Enter")
        await page.until("!document.querySelector('#app').hidden")
        assert await page.js("document.querySelector('#prompt').value") == "not heard\n\nnot sent"
        await page.until("document.querySelector('#options select')")
        await page.click("#prompt")
        await page.press("Enter")
        await page.until_text(".message.agent", "Heard.")
        await page.reload()
        await page.until_text(".message.agent", "Heard.")
        assert await page.js("document.querySelector('#prompt').value") == ""


async def test_logging_out_and_a_revoked_token_end_it(page: Tab, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_SWEEP_SECONDS", 0.1)
    async with serve([{"say": "hi"}]) as served:
        await enter(page, served)
        assert "token" not in await page.js("location.href")
        await page.click("#logout")
        await page.until("!document.querySelector('#login').hidden")
        await page.reload()
        await page.until("!document.querySelector('#login').hidden")
        await enter(page, served)
        assert served.tokens.revoke("default")
        await page.until("!document.querySelector('#login').hidden")


async def test_a_link_with_the_token_of_another_asks_first(page: Tab, serve: Serve) -> None:
    def is_in(name: str) -> str:
        here = "!document.querySelector('#app').hidden && document.querySelector('#another').hidden"
        who = f"document.querySelector('#who').textContent === '{name}'"
        return f"{here} && {who} && !location.href.includes('token') && window.before === undefined"

    async with serve([{"say": "hi"}]) as served:
        await enter(page, served)
        await page.until(is_in("default"))
        link = "#token=" + served.token_of("mallory\u3164")
        # Both ways a link is followed: by a page that is here, and by a new one.
        for follow in (f"location.hash = '{link}'", f"location.assign('/?{link}')"):
            await page.js(f"window.before = true; {follow}")
            await page.until("window.before === undefined && document.querySelector('#another')?.hidden === false")
            await page.until_text("#another", "You are logged in as default. This link logs you in as mallory⟨U+3164⟩.")
            assert await page.js("document.querySelector('#app').hidden")
            assert "token" not in await page.js("location.href")
            assert await page.js("document.activeElement.id") == "stay"
            await page.picture("another")
            await page.click("#stay")
            await page.until(is_in("default"))
        for harmless in (served.token, "unknown"):  # one's own, and no other's
            await page.js(f"window.before = true; location.hash = '#token={harmless}'")
            await page.until(is_in("default"))
        await page.js(f"window.before = true; location.hash = '{link}'")
        await page.until("!document.querySelector('#another').hidden")
        await page.click("#switch")
        await page.until(is_in("mallory⟨U+3164⟩"))


STARTED = """
import importlib.machinery, importlib.util, sys
loader = importlib.machinery.SourceFileLoader("dev", "dev")
dev = importlib.util.module_from_spec(importlib.util.spec_from_loader("dev", loader))
loader.exec_module(dev)
dev.PAGE_PORT = int(sys.argv[1])
dev.serve_page([])
"""


async def test_dev_run_shows_a_link_to_the_demo_though_the_port_is_taken(page: Tab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", STARTED, port, cwd=ROOT, stderr=PIPE)
        assert process.stderr is not None
        try:
            said = ""
            async with asyncio.timeout(30):
                while "listening on" not in said:
                    line = (await process.stderr.readline()).decode()
                    assert line, said
                    said += line
            (link,) = re.findall(r"in a browser: (\S+#token=\S+)", said)
            assert f":{port}/" not in link
            await page.go(link)
            await page.until_text("#title", "New session")
            await prompt(page, "list")
            await page.until_text("#transcript", "README.md")
            await page.until("document.querySelector('#transcript').dataset.state === 'idle'")
            process.send_signal(signal.SIGINT)
            async with asyncio.timeout(30):
                assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()


async def test_the_agent_is_chosen_from_a_list(page: Tab, tmp_path: Path) -> None:
    async with gateway(counting(3), tmp_path, beside={"other": counting(1)}) as served:
        await enter(page, served)
        choices = "[...document.querySelectorAll('#agent option')].map((one) => one.value)"
        assert await page.js(choices) == ["main", "other"]
        await prompt(page, "count")
        await page.until_text(".message.agent", "0 1 2")
        await page.click("#make")
        await page.until("document.querySelector('#agent')")
        change = "list.value = 'other'; list.dispatchEvent(new Event('change'))"
        await page.js(f"((list) => {{ {change} }})(document.querySelector('#agent'))")
        await page.until_text("#title", "New session")
        await page.until("document.querySelector('#agent')?.value === 'other'")
        await prompt(page, "count")
        await page.until("document.querySelector('.message.agent')?.innerText.trim() === '0'")
        await page.reload()
        await page.until("document.querySelector('.message.agent')?.innerText.trim() === '0'")
        await page.click("#make")
        await page.until("document.querySelector('#agent')?.value === 'other'")
