"""Agentao's own client for other agents: its manager, used as its command line uses it. Told and telling as the others.

A step may also be

    {"prompt": TEXT, "policy": MODE}                answer without a user: `accept_all` or `reject_all`
    {"prompt": TEXT, "permission": "approve"}       answer as its user does: `approve`, `reject`, `approve always`, ...
    {"prompt": TEXT, "reply": TEXT}                 answer a question in free text
    {"prompt": TEXT, "cancel_at": TEXT, "by": HOW}  cancel by a `notification`, as it does, or by a `request`
"""

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from agentao.acp_client.errors import AcpInteractionRequiredError  # type: ignore[import-not-found]
from agentao.acp_client.manager import ACPManager  # type: ignore[import-not-found]
from agentao.acp_client.models import AcpClientConfig  # type: ignore[import-not-found]

from tests.interop.peers.telling import task, tell

NAME = "ours"
# How often its user looks whether there is a question.
LOOK_SECONDS = 0.02
TURN_SECONDS = 40.0


class Watcher:
    """Tells everything it hears, and cancels where the step says so."""

    def __init__(self) -> None:
        self.step: dict[str, str] = {}
        self.cancels: Callable[[], None] = lambda: None

    def __call__(self, server: str, method: str, params: Any) -> None:
        update = params["update"]
        tell("update", update)
        if update["sessionUpdate"] == "agent_message_chunk" and update["content"]["text"] == self.step.get("cancel_at"):
            # Not here: this is the thread that would hear the answer.
            threading.Thread(target=self.cancels).start()


def main() -> None:
    plan, cwd, (command, *arguments), _ = task()
    entry = {"command": command, "args": arguments, "env": {}, "cwd": cwd}
    watcher = Watcher()
    config = AcpClientConfig.from_dict({"servers": {NAME: entry}}, project_root=Path(cwd))
    manager = ACPManager(config, notification_callback=watcher)
    try:
        client = manager.connect_server(NAME)
        info = client.connection_info
        tell("initialize", {"protocolVersion": info.protocol_version, "name": info.agent_info["name"]})
        if loaded := plan[0].get("load"):
            plan = plan[1:]
            where = {"sessionId": loaded, "cwd": cwd, "mcpServers": []}
            tell("session", {**client.call("session/load", where, timeout=TURN_SECONDS), "sessionId": loaded})
            info.session_id = loaded  # it has no load of its own; the rest of it goes on with this session
        else:
            tell("session", {"sessionId": info.session_id})
        with ThreadPoolExecutor(1) as pool:
            for step in plan:
                watcher.step = step
                watcher.cancels = lambda: cancel(manager, client, step)  # noqa: B023  # used before the next step
                end: Future[Any] = pool.submit(prompted, manager, step)
                while not end.done():
                    answer(manager, step)
                    time.sleep(LOOK_SECONDS)
                try:
                    tell("end", end.result())
                except AcpInteractionRequiredError as error:
                    tell("interaction required", str(error))
    except BaseException:
        sys.stderr.writelines(f"agent: {line}\n" for line in manager.get_server_logs(NAME))
        raise
    finally:
        manager.stop_all()


def prompted(manager: Any, step: dict[str, str]) -> Any:
    without_user = {"interactive": False, "interaction_policy": step["policy"]} if "policy" in step else {}
    return manager.send_prompt(NAME, step["prompt"], timeout=TURN_SECONDS, **without_user)


def answer(manager: Any, step: dict[str, str]) -> None:
    """What its user does about a question."""
    for question in manager.interactions.list_pending(NAME):
        tell(question.kind.value, question.details)
        word, _, always = step.get("permission", "").partition(" ")
        if "reply" in step:
            manager.reply_interaction(NAME, question.request_id, step["reply"])
        elif word == "approve":
            manager.approve_interaction(NAME, question.request_id, always=bool(always))
        elif word == "reject":
            manager.reject_interaction(NAME, question.request_id, always=bool(always))
        else:
            sys.exit(f"nobody said how to answer {question}")


def cancel(manager: Any, client: Any, step: dict[str, str]) -> None:
    if step["by"] == "notification":
        manager.cancel_turn(NAME)
    else:
        params = {"sessionId": client.connection_info.session_id}
        tell("cancelled", client.call("session/cancel", params, timeout=TURN_SECONDS))


if __name__ == "__main__":
    main()
