import os
from pathlib import Path

from dragoman import Agent, Choice, Select, SqliteStore

folder = os.environ.get("REVIEWER_HOME", "reviewer-sessions")
strictness = Select("mode", "Mode", "kind", [Choice("kind", "Kind"), Choice("strict", "Strict")], category="mode")
agent = Agent("reviewer", version="1.0", options=[strictness], store=lambda: SqliteStore(Path(folder)))


@agent.prompt
async def review(session, prompt):
    file = Path(session.cwd, prompt.text.strip())
    await session.plan(["read the file", "look for long lines", "report"])
    async with session.tool(f"Read {file.name}", kind="read", locations=[str(file)]) as call:
        lines = file.read_text(encoding="utf-8").splitlines()
        await call.add(f"{len(lines)} lines")
    limit = 80 if session.option("mode") == "strict" else 120
    long = [number for number, line in enumerate(lines, 1) if len(line) > limit]
    await session.remember("review", {"file": file.name, "long": len(long)})
    await session.say(f"Longer than {limit}: {', '.join(map(str, long)) or 'no line'}.")


@agent.command("past", "What was reviewed in this session")
async def past(session, prompt):
    for review in await session.recall("review"):
        yield f"{review['file']}: {review['long']} long lines\n"


if __name__ == "__main__":
    agent.run()
