"""`python -m chaos`: break a cluster under load for as long as it is told, and say whether its promises have held.

Exit status: 0 they have, 1 one has not, 2 this machine cannot run a campaign.
"""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from chaos import campaign, network, scenarios
from chaos.scenarios import SCENARIOS

LEASE: Final = 2.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev chaos", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="how long faults are injected; 600, if not given")
    parser.add_argument("--seed", type=int, help="choose the same faults as a campaign that has printed this number")
    parser.add_argument("--faults", type=int, default=0, help="end after so many")
    parser.add_argument("--sessions", type=int, default=6, help="worked on at the same time; 6, if not given")
    parser.add_argument("--lease", type=float, default=LEASE, help=f"of each node, in seconds; {LEASE:g}, if not given")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    parser.add_argument("--scenario", choices=SCENARIOS, help="play this one in place of a campaign")
    parser.add_argument("--broken", action="store_true", help="with nodes that are broken as the scenario is named")
    options = parser.parse_args()
    if options.broken and not options.scenario:
        parser.error("--broken goes with --scenario")
    lacking = network.missing()
    if lacking:
        print(f"chaos: {lacking}", file=sys.stderr)
        return 2
    network.enter([sys.executable, "-m", "chaos", *sys.argv[1:]])
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    folder.chmod(0o755)
    if options.scenario:
        return asyncio.run(played(folder, options))
    seed = random.randrange(1 << 30) if options.seed is None else options.seed
    print(f"seed {seed}, leases of {options.lease:g} s", flush=True)
    return asyncio.run(report(folder, seed, options))


async def played(folder: Path, options: argparse.Namespace) -> int:
    found = await scenarios.play(folder, options.scenario, is_broken=options.broken)
    for violation in found:
        print(violation)
    print(f"{options.scenario}: {len(found)} violations")
    shutil.rmtree(folder, ignore_errors=True)
    return 1 if found else 0


async def report(folder: Path, seed: int, options: argparse.Namespace) -> int:
    outcome = await campaign.run(
        folder,
        seconds=options.seconds,
        seed=seed,
        lease=options.lease,
        sessions=options.sessions,
        faults=options.faults,
        say=lambda line: print(line, flush=True),
    )
    print(outcome.as_json())
    if options.json:
        options.json.write_text(outcome.as_json() + "\n")
    if outcome.is_met:
        shutil.rmtree(folder, ignore_errors=True)
        return 0
    print(f"what it left behind is in {folder}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
