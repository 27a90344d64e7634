from dragoman import Agent, events
from dragoman.testing import ScriptedClient

agent = Agent("greeter")


@agent.prompt
async def reply(session, prompt):
    allowed = await session.ask_permission("May I?")
    yield "Thank you." if allowed else "As you wish."


async def test_a_refusal_is_taken_politely():
    user = ScriptedClient(agent, permissions=["reject_once"])
    *_, said, end = await user.play("hello")
    assert (said.text, end) == ("As you wish.", events.Idle(stop_reason="end_turn"))
