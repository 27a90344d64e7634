"""Lines that were typed while a turn runs keep their order, whatever becomes of each."""

import asyncio

from dragoman.cli.terminal.type_ahead import TypedLine
from dragoman.cli.terminal.waiting_lines import WaitingLines


async def test_a_line_that_the_agent_did_not_take_is_given_back_before_what_was_typed_after_it() -> None:
    answered = asyncio.Event()

    async def steer(text: str) -> bool:
        await answered.wait()
        return False

    lines = WaitingLines(steer, lambda sentence: None)
    lines.add(TypedLine("first", is_for_later=False))
    lines.add(TypedLine("second", is_for_later=True))
    answered.set()
    await lines.wait_until_placed()
    assert lines.take_all() == "first\nsecond"
