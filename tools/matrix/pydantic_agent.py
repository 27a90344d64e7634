"""An agent on pydantic-acp, as its documentation makes one, with a model that needs no provider.

Runs in an environment of its own, in which nothing of ours is found.
"""

import asyncio

from pydantic_acp import run_acp  # type: ignore[import-not-found]
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel


async def answer(messages: list[ModelMessage], info: AgentInfo):  # type: ignore[no-untyped-def]
    """Say hello, or say something for a long time."""
    yield "Hello there. "
    if "matrix slow" in str(messages[-1]):
        for _ in range(300):
            await asyncio.sleep(0.2)
            yield "Still at it. "


run_acp(agent=Agent(FunctionModel(stream_function=answer), name="matrix"))
