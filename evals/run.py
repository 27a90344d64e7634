"""Run many attempts, several at a time. What is done is kept at once, so a run that is stopped can go on."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from evals.agents import AgentChoice
from evals.attempt import attempt
from evals.progress import Progress
from evals.results import UNGRADED, Attempt, ResultFile
from evals.task import Task

Try = Callable[[Task, AgentChoice, int], Awaitable[Attempt]]


def open_work(tasks: Sequence[Task], repeat: int, done: Sequence[Attempt]) -> list[tuple[Task, int]]:
    """Return the attempts that are to be made: not those that have a pass or a fail for the task as it is now."""
    graded = {one.key for one in done if one.verdict not in UNGRADED}
    wanted = [(task, number) for number in range(1, repeat + 1) for task in tasks]
    return [(task, number) for task, number in wanted if (task.name, task.digest, number) not in graded]


async def run(
    work: Sequence[tuple[Task, int]],
    choice: AgentChoice,
    file: ResultFile,
    progress: Progress,
    parallel: int,
    tried: Try = attempt,
) -> list[Attempt]:
    """Make the attempts, `parallel` at a time. Cancelled, it stops the agents and raises; what is done is kept."""
    todo = list(reversed(work))
    made: list[Attempt] = []

    async def worker() -> None:
        while todo:
            task, number = todo.pop()
            progress.begin(task.name)
            one = await tried(task, choice, number)
            file.append(one)
            made.append(one)
            progress.end(one)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(parallel, len(todo))):
            group.create_task(worker())
    return made
