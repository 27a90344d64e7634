"""`python -m bench`: ours beside its peers in one run; a table each, then a verdict for every promised figure.

Exit status: 0 all measured promises are met, 1 one is missed or ours was asked for and did not run, 130 interrupted.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from bench import cluster, coder, database, gateway, limits, load, report, search, store
from bench import run as one_run
from bench.benchmarks import BENCHMARKS, Benchmark, start
from bench.harness import Guardian, PeerFailed
from bench.install import InstallFailed
from bench.limits import Sizes
from bench.results import Result, verdicts
from bench.roster import PEERS, Peer

# Without peers; these print their own lines.
OWN: Final[Mapping[str, Callable[[list[str]], int]]] = {
    "store": store.main,
    "database": database.main,
    "cluster": cluster.main,
    "load": load.main,
    "coder": coder.main,
    "search": search.main,
    "run": one_run.main,
    "gateway": gateway.main,
}


def main() -> int:
    options = arguments()
    sizes = limits.QUICK if options.quick else limits.FULL
    guardian = Guardian()
    try:
        benchmarks, own = options.only
        status = run(guardian, options.peers, benchmarks, sizes, options.json) if benchmarks else 0
        for name in own:
            status = max(status, OWN[name](["--quick"] if options.quick else []))
        return status
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    finally:
        guardian.close()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="Dragoman beside its peers, in one run.")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and smaller counts; noisier ratios")
    parser.add_argument(
        "--only",
        type=chosen_benchmarks,
        default=(list(BENCHMARKS.values()), list(OWN)),
        metavar="NAME,...",
        help=f"by name or by the first part of it: {', '.join(BENCHMARKS)}; without peers: {', '.join(OWN)}",
    )
    parser.add_argument(
        "--peers", type=chosen_peers, default=list(PEERS.values()), metavar="NAME,...", help=f"of {', '.join(PEERS)}"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every repetition here")
    return parser.parse_args()


def chosen_benchmarks(names: str) -> tuple[list[Benchmark], list[str]]:
    """Those beside peers, and the names of those without."""
    chosen = [each for each in BENCHMARKS.values() if any(_selects(name, each.name) for name in names.split(","))]
    own = [name for name in OWN if name in names.split(",")]
    if not chosen and not own:
        raise argparse.ArgumentTypeError(f"{names!r} is none of {', '.join((*BENCHMARKS, *OWN))}")
    return chosen, own


def chosen_peers(names: str) -> list[Peer]:
    unknown = set(names.split(",")) - set(PEERS)
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))} is none of {', '.join(PEERS)}")
    return [PEERS[name] for name in PEERS if name in names.split(",")]


def run(
    guardian: Guardian, peers: Sequence[Peer], benchmarks: Sequence[Benchmark], sizes: Sizes, json_file: Path | None
) -> int:
    print(report.heading(), flush=True)
    missing: dict[str, str] = {}
    ready = [peer for peer in peers if is_ready(guardian, peer, sizes, missing)]
    for name, reason in missing.items():
        print(f"{PEERS[name].title} is missing: {reason}")
    print()
    results: dict[str, Result] = {}
    for benchmark in benchmarks:
        results[benchmark.name] = measure(guardian, benchmark, ready, sizes)
        print(report.table(results[benchmark.name], sizes), flush=True)
    return conclude(results, sizes, json_file, ours_was_asked_for=PEERS["ours"] in peers)


def is_ready(guardian: Guardian, peer: Peer, sizes: Sizes, missing: dict[str, str]) -> bool:
    """Installs the peer and starts it once off the record, which also writes its bytecode."""
    try:
        peer.prepare()
        start(guardian, peer, sizes)
    except (InstallFailed, PeerFailed, OSError) as error:
        missing[peer.name] = str(error)
    return peer.name not in missing


def measure(guardian: Guardian, benchmark: Benchmark, peers: Sequence[Peer], sizes: Sizes) -> Result:
    """All peers in turn within each repetition; another goes first each time. Who fails once is left out."""
    taking_part = [peer for peer in peers if peer.name not in benchmark.without]
    result = Result(benchmark, {peer.name: [] for peer in taking_part})
    for turn in range(benchmark.repetitions(sizes)):
        first = turn % max(len(taking_part), 1)
        for peer in taking_part[first:] + taking_part[:first]:
            if peer.name in result.failures:
                continue
            show_progress(f"{benchmark.name} {turn + 1}/{benchmark.repetitions(sizes)} {peer.title}")
            try:
                result.runs[peer.name].append(benchmark.measure(guardian, peer, sizes))
            except PeerFailed as error:
                result.failures[peer.name] = str(error)
                del result.runs[peer.name]
    show_progress("")
    return result


def conclude(results: Mapping[str, Result], sizes: Sizes, json_file: Path | None, *, ours_was_asked_for: bool) -> int:
    judged = verdicts(results)
    if judged:
        print(report.verdict_table(judged))
    if json_file is not None:
        json_file.write_text(json.dumps(report.as_json(results, judged, sizes), indent=1) + "\n", encoding="utf-8")
    words = {each.word for each in judged}
    return 1 if "MISSED" in words or (ours_was_asked_for and "missing" in words) else 0


def show_progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _selects(asked: str, name: str) -> bool:
    return name == asked or name.startswith(f"{asked}-")


if __name__ == "__main__":
    sys.exit(main())
