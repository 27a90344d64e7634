"""An agent that keeps a list of things to do for each session."""

from pathlib import Path

from dragoman import Agent, Choice, Prompt, Select, Session, SqliteStore

order = Select("order", "Order", "added", [Choice("added", "As added"), Choice("name", "By name")])
agent = Agent("todo", version="1.0", options=[order], store=lambda: SqliteStore(Path("todo-sessions")))


@agent.prompt
async def add(session: Session, prompt: Prompt) -> None:
    """Every line of a prompt is one thing to do."""
    for line in prompt.text.splitlines():
        await session.remember("todo", line.strip())
    await session.say(await listed(session))


@agent.command("save", "Write the list into a file of the folder")
async def save(session: Session, prompt: Prompt) -> None:
    _, name = prompt.command
    file = Path(session.cwd, name or "TODO.md")
    text = await listed(session)
    before = file.read_text(encoding="utf-8") if file.exists() else None
    async with session.tool(f"Write {file.name}", kind="edit", locations=[str(file)]) as call:
        await call.diff(str(file), before, text)
        if not await session.ask_permission(f"Write {file.name}?", tool=call):
            await call.end("failed")
            return
        file.write_text(text, encoding="utf-8")
    await session.say(f"Saved to {file.name}.\n")


async def listed(session: Session) -> str:
    things = [str(thing) for thing in await session.recall("todo")]
    if session.option("order") == "name":
        things.sort()
    return "".join(f"- {thing}\n" for thing in things)


if __name__ == "__main__":
    agent.run()
