"""`python -m tools.matrix`: run the peers, keep the outcome in `docs/matrix.json`, and write the two pages from it.

A peer that is named runs alone, and the others stay as they were: the pages say the date of each.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Any, Final

from tests.support.needs import ROOT
from tools.matrix.agents import AGENTS
from tools.matrix.clients import CLIENTS
from tools.matrix.pages import html_page, markdown_page
from tools.matrix.runs import run_agent, run_client

DATA: Final = ROOT / "docs" / "matrix.json"
MARKDOWN: Final = ROOT / "docs" / "matrix.md"
HTML: Final = ROOT / "docs" / "matrix-rows.html"
# What an hour is enough for where an agent takes seconds to start: every part of a conversation, once or twice.
CORE: Final = (
    *("ACP-INIT-001", "ACP-INIT-003", "ACP-INIT-501", "ACP-INIT-201", "ACP-INIT-203", "ACP-INIT-204"),
    *("ACP-SCHEMA-001", "ACP-SCHEMA-501", "ACP-JSONRPC-001", "ACP-JSONRPC-002", "ACP-JSONRPC-003", "ACP-JSONRPC-501"),
    *("ACP-JSONRPC-510", "ACP-TRANSPORT-001", "ACP-TRANSPORT-201", "ACP-TRANSPORT-501", "ACP-CLIENTCAP-001"),
    *("ACP-SESSION-001", "ACP-SESSION-002", "ACP-SESSION-502", "ACP-LIST-501", "ACP-LIST-201", "ACP-CLOSE-501"),
    *("ACP-CLOSE-201", "ACP-PROMPT-001", "ACP-PROMPT-201", "ACP-PROMPT-502", "ACP-PROMPT-503", "ACP-PROMPT-002"),
    *("ACP-PROMPT-205", "ACP-STATE-201", "ACP-STATE-202", "ACP-CANCEL-001", "ACP-CANCEL-201", "ACP-CANCEL-501"),
    *("ACP-CANCEL-203", "ACP-CANCEL-505", "ACP-CANCEL-509", "ACP-PERM-501", "ACP-PERM-201", "ACP-PERM-502"),
    *("ACP-PERM-505", "ACP-MODES-502", "ACP-CONFIG-501", "ACP-CONFIG-202", "ACP-LOAD-501", "ACP-LOAD-504"),
    *("ACP-LOAD-505", "ACP-RESUME-501", "ACP-RESUME-201", "ACP-RESUME-503"),
)


def main(arguments: Sequence[str]) -> int:
    """Run, write, and return 1 if a peer could not be run at all."""
    parser = argparse.ArgumentParser(prog="./dev matrix", description=__doc__.partition("\n")[0])
    parser.add_argument("peers", nargs="*", metavar="NAME", help="only these agents and clients")
    parser.add_argument("--list", action="store_true", help="name the peers, and run nothing")
    parser.add_argument("--pages", action="store_true", help="write the pages from the data, and run nothing")
    parser.add_argument("--jobs", type=int, default=4, help="rows at the same time (default 4)")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds for one answer (default 30)")
    parser.add_argument("--rows", default="", help="only these rows: ID,ID,…; or core, which an hour is enough for")
    given = parser.parse_args(arguments)
    rows = ",".join(CORE) if given.rows == "core" else given.rows
    known = {one.name: one for one in (*AGENTS, *CLIENTS)}
    if given.list:
        print("\n".join(known))
        return 0
    unknown = [name for name in given.peers if name not in known]
    if unknown:
        parser.error(f"there is no peer {unknown[0]!r}; --list names them")
    if not given.pages:
        asyncio.run(_run(given, rows, given.peers or list(known)))
    write_pages(_read())
    print(f"Wrote {MARKDOWN.relative_to(ROOT)} and {HTML.relative_to(ROOT)}.")
    return 0


async def _run(given: argparse.Namespace, rows: str, names: Sequence[str]) -> None:
    for agent in AGENTS:
        if agent.name in names:
            found = await run_agent(agent, jobs=given.jobs, rows=rows, timeout=given.timeout)
            _keep(found | {"asked": given.rows or "all"})
    for client in CLIENTS:
        if client.name in names:
            # The rows of agents are none of clients.
            _keep(await run_client(client, jobs=given.jobs, timeout=given.timeout) | {"asked": "all"})


def _keep(found: dict[str, Any]) -> None:
    """Write what came of one peer at once: a run takes long, and may be stopped."""
    order = [one.name for one in (*AGENTS, *CLIENTS)]
    data = {one["name"]: one for one in _read()} | {found["name"]: found}
    peers = sorted(data.values(), key=lambda one: order.index(one["name"]) if one["name"] in order else len(order))
    DATA.write_text(json.dumps(peers, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    verdicts = [row["verdict"] for row in found["rows"].values()]
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in ("pass", "fail", "not tested", "blocked"))
    print(f"{found['name']}: {found['obstacle'] or counts}, in {found['seconds']} s", flush=True)


def _read() -> list[dict[str, Any]]:
    return json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else []


def write_pages(data: list[dict[str, Any]]) -> None:
    """Write the two pages."""
    MARKDOWN.write_text(markdown_page(data), encoding="utf-8")
    HTML.write_text(html_page(data), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
