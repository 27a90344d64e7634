from dragoman import Agent

agent = Agent("greeter", version="1.0")


@agent.prompt
async def reply(session, prompt):
    await session.think("A prompt has arrived.")
    async with session.tool("Look around", kind="read") as call:
        if await session.ask_permission("May I look around?", tool=call):
            await call.add("All is well.")
    await session.say(f"You said: {prompt.text}")


agent.run()
