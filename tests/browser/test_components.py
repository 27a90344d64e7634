"""The components of the console in a real browser, under the page's policy: both themes, every width, long lists."""

from typing import Any

import pytest

from .chrome import Tab
from .measures import THEMES, WIDTHS, Task, boxes_beside, set_theme, traced, wcag_violations

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]

LONGEST_TASK = 50.0  # milliseconds
LIST = "document.querySelector('.virtual-list')"
# Where the list stands in each frame while words come: how far from its end, and how often it went back.
WATCHED = """(async () => {
  const list = document.querySelector('.virtual-list');
  const gaps = [], tops = [];
  let on = true;
  const look = () => {
    gaps.push(Math.round(list.scrollHeight - list.clientHeight - list.scrollTop));
    tops.push(list.scrollTop);
    if (on) requestAnimationFrame(() => setTimeout(look)); // when the frame is painted
  };
  look();
  await start(%d, %d);
  on = false;
  const back = tops.filter((top, at) => at > 0 && top < tops[at - 1] - 0.5).length;
  return { farthest: Math.max(...gaps), back };
})()"""
# The item in the middle of the list and where it stands, in each frame.
STANDING = """(async () => {
  const list = document.querySelector('.virtual-list');
  const seen = new Set();
  let on = true;
  const look = () => {
    const box = list.getBoundingClientRect();
    const item = document.elementFromPoint(box.x + 300, box.y + 200).closest('.virtual-item');
    seen.add(`${item.dataset.index} at ${Math.round(item.getBoundingClientRect().top)}`);
    if (on) requestAnimationFrame(() => setTimeout(look));
  };
  look();
  await start(%d, %d);
  append();
  on = false;
  return [...seen];
})()"""
COLOURED = "document.querySelector('.code-block .hljs-keyword') && document.querySelector('.line .hljs-keyword')"


@pytest.mark.parametrize("theme", THEMES)
async def test_what_is_read_meets_wcag(page: Tab, gallery: str, theme: str) -> None:
    await set_theme(page, theme)
    await page.go(f"{gallery}#all")
    await page.until(
        "document.querySelector('.code-block .hljs-keyword') && document.querySelector('.line .hljs-keyword')"
    )
    await page.picture(f"components-{theme}")
    assert await wcag_violations(page) == []


@pytest.mark.parametrize("theme", THEMES)
async def test_what_is_opened_meets_wcag_and_gives_the_focus_back(page: Tab, gallery: str, theme: str) -> None:
    await set_theme(page, theme)
    await page.go(f"{gallery}#overlays")
    await page.click("[aria-haspopup=menu]")
    await page.until("document.activeElement.textContent === 'Rename'")
    assert await wcag_violations(page) == []
    await page.press("Escape")
    await page.until("document.activeElement.textContent === 'More'")

    await page.click(".gallery-row > .button:last-of-type")
    await page.until("document.activeElement.textContent === 'Cancel'")  # nothing is lost by Enter
    assert await wcag_violations(page) == []
    for _ in range(4):  # in a circle, within the dialog
        await page.press("Tab")
        assert await page.js(
            "document.activeElement === document.body || document.activeElement.closest('dialog') !== null"
        )
    await page.press("Escape")
    await page.until("!document.querySelector('dialog') && document.activeElement.textContent === 'Delete'")


async def test_nothing_reaches_over_the_edge_from_390_to_2560_pixels(page: Tab, gallery: str) -> None:
    await page.go(f"{gallery}#all")
    found: dict[int, Any] = {}
    for width in WIDTHS:
        await page.resize(width, 900)
        found[width] = await boxes_beside(page)
    assert found == {width: [] for width in WIDTHS}


async def test_two_sides_of_a_change_stand_one_below_the_other_where_there_is_no_room(page: Tab, gallery: str) -> None:
    await page.go(f"{gallery}#changes")
    beside = "(([a, b]) => Math.abs(a.getBoundingClientRect().top - b.getBoundingClientRect().top) < 1)"
    pair = "document.querySelector('.diff-row:has(.removed):has(.added)').children"
    assert await page.js(f"{beside}({pair})") is True
    await page.resize(390, 800)
    assert await page.js(f"{beside}({pair})") is False


async def test_words_that_stream_leave_the_end_in_view(page: Tab, gallery: str) -> None:
    await page.go(f"{gallery}#streaming")
    await page.until(f"{LIST} && window.start")
    seen = await page.js(WATCHED % (1000, 2))  # 500 in a second
    assert seen["farthest"] <= 1, seen  # a pixel is rounded
    assert seen["back"] == 0
    await page.js("append()")
    await page.until(f"{LIST}.scrollHeight - {LIST}.clientHeight - {LIST}.scrollTop <= 1")


async def test_a_reader_who_has_scrolled_up_is_left_where_they_are(page: Tab, gallery: str) -> None:
    await page.go(f"{gallery}#streaming")
    await page.until(f"{LIST} && window.start")
    await page.js(f"{LIST}.scrollTop -= 3000")
    await page.until("document.querySelector('.gallery-frame').dataset.end === 'false'")
    await page.js("new Promise((done) => setTimeout(done, 300))")  # what was not measured yet is drawn
    assert len(await page.js(STANDING % (500, 1))) == 1


async def test_ten_thousand_messages_are_walked_through_in_short_tasks(page: Tab, gallery: str) -> None:
    await page.go(f"{gallery}#transcript")
    await page.until("window.list && window.list.isAtEnd()")
    assert await page.js("document.querySelectorAll('.virtual-item').length < 30")
    async with traced(page) as tasks:
        await page.js(steps(30))
    assert_short(tasks)
    assert await page.js("list.scrollToKey('m5000')") is True
    await page.until(
        f"[...document.querySelectorAll('.virtual-item')].some((item) => item.dataset.index === '5000'"
        f" && Math.abs(item.getBoundingClientRect().top - {LIST}.getBoundingClientRect().top) < 2)"
    )
    await page.js("list.scrollToEnd()")
    await page.until("document.querySelector('.virtual-item[data-index=\"9999\"]') && list.isAtEnd()")


@pytest.mark.slow
async def test_ten_thousand_messages_and_a_long_stream_in_short_tasks(page: Tab, gallery: str) -> None:
    async with traced(page) as tasks:
        await page.go(f"{gallery}#transcript")
        await page.until("window.list && window.list.isAtEnd()")
        await page.js(steps(300))
        for _ in range(300):
            await page.chrome.do(page.page.mouse.wheel(0, -600))
    assert_short(tasks)
    await page.go("about:blank")
    await page.go(f"{gallery}#streaming")
    await page.until(f"{LIST} && window.start")
    async with traced(page) as tasks:
        seen = await page.js(WATCHED % (10_000, 20))
    assert_short(tasks)
    assert seen["farthest"] <= 1, seen  # a pixel is rounded
    assert seen["back"] == 0


def steps(count: int) -> str:
    """From the first to the last item in so many steps, each of them drawn."""
    return (
        f"(async () => {{ for (let step = 0; step <= {count}; step++) {{"
        f" {LIST}.scrollTop = ({LIST}.scrollHeight - {LIST}.clientHeight) * step / {count};"
        " await new Promise((done) => requestAnimationFrame(() => setTimeout(done))); } })()"
    )


def assert_short(tasks: list[Task]) -> None:
    """By the time of the processor: how long a task waits for one is not the page's doing."""
    print(f"{len(tasks)} tasks, the longest: {[f'{cpu:.0f} of {wall:.0f} ms' for cpu, wall in tasks[:3]]}")
    assert tasks, "the trace has no tasks"
    assert [task for task in tasks if task.cpu > LONGEST_TASK] == []
