"""Audit the removals of datasketch, text-dedup and datatrove at their default settings.

    python benchmarks/run_audit.py ../shared/data [--limit 500] [--results FILE]

The peers are installed into an environment of their own, from requirements-peers.txt. Each removes
duplicates from a set by its adapter in `peers/`, with the bands and rows that it chooses by default
for a threshold of 0.8 or without one; then `neardup.audit` judges its removals by the exact Jaccard
similarity of 5-grams of words at 0.8. Prints the table of benchmarks/results/audit.md.
A peer that fails is left out, and named on stderr.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from environment import HERE, conditions, newest_python, peers_python, versions

import neardup

TITLES = (
    *("texts", "package", "removed", "sound", "lost", "on a chain"),
    *("just below the threshold", "left among the kept", "recall"),
)
SETS = {"en_doc_versions": "manual pages", "en_licenses": "licences"}
PEERS = HERE / "peers"


class Peer(NamedTuple):
    """A package, its adapter, and its default bands and rows."""

    name: str
    adapter: str
    bands: int
    rows: int
    confirm: str = "bands"


DEFAULTS = (
    # MinHashLSH(threshold=0.8, num_perm=128): a document that shares a band with a kept one goes.
    Peer("datasketch", "datasketch_dedup.py", 9, 13),
    # MinhashConfig(): 14 buckets of 8 hashes.
    Peer("datatrove", "datatrove_dedup.py", 14, 8),
    # The bands and rows that it computes for a threshold of 0.8 and 128 hashes, of which it has no
    # defaults; check_false_positive is off by default.
    Peer("text-dedup", "text_dedup_dedup.py", 9, 13),
)


def read_set(folder: Path, limit: int | None) -> pa.Table:
    """Return the texts of a set, numbered, or the first of them."""
    texts = [json.loads(line)["text"] for line in islice(_lines(folder), limit)]
    return pa.table({"id": [str(number) for number in range(len(texts))], "text": texts})


def _lines(folder: Path) -> Iterator[str]:
    path = next(iter(sorted(folder.glob("data.jsonl*"))))
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from lines
        return
    decoded = subprocess.run(["zstd", "-dcq", str(path)], check=True, capture_output=True).stdout
    yield from decoded.decode().splitlines()


def run_peer(peer: Peer, source: Path, output: Path, python: str) -> bool:
    """Run a peer; return whether it could."""
    command = [python, str(PEERS / peer.adapter), str(source), str(output)]
    command += ["--bands", str(peer.bands), "--rows", str(peer.rows), "--confirm", peer.confirm]
    # Packages on PYTHONPATH are for this Python.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ) if python == sys.executable else environment,
    )
    if done.returncode:
        reason = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        print(f"{peer.name} is left out: {''.join(reason)}", file=sys.stderr)
    return not done.returncode


def row_of(texts: str, peer: str, report: Mapping[str, Any]) -> str:
    """Return a row of the table."""
    counts = report["counts"]
    lost = report["lost"]
    faults = {fault["fault"]: fault["documents"] for fault in report["faults"]}
    left = report["left"]["documents"]
    # Of the documents that could be removed, the share that was.
    recall = report["sound"]["documents"] / (report["sound"]["documents"] + left or 1)
    cells = (
        texts,
        peer,
        f"{counts['removed']:,}",
        f"{100 * report['sound']['share']:.1f} %",
        f"{lost['documents']:,}",
        f"{faults.get('chain', 0):,}",
        f"{faults.get('estimate', 0) + faults.get('below_threshold', 0):,}",
        f"{left:,}",
        f"{100 * recall:.1f} %",
    )
    return f"| {' | '.join(cells)} |"


def rows_of(args: argparse.Namespace, python: str, names: Mapping[str, str]) -> Iterator[str]:
    """Yield the rows of the table. names : of the peers, with their versions."""
    for name, kind in SETS.items():
        table = read_set(args.data / name, args.limit)
        texts = f"{len(table):,} {kind}"
        with tempfile.TemporaryDirectory() as work:
            source = Path(work) / "in.parquet"
            pq.write_table(table, source)
            for peer in DEFAULTS:
                output = Path(work) / peer.name
                if run_peer(peer, source, output, python):
                    kept = output / "kept.parquet"
                    result = neardup.audit(source, kept=kept, match="id", sample=1_000_000)
                    yield row_of(texts, names[peer.name], result.report)
                    texts = ""  # once for each set


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--limit", type=int, help="read the first texts of each set only")
    parser.add_argument("--results", type=Path, help="write the table to this file, too")
    parser.add_argument("--peers-env", type=Path, default=HERE / ".venv-peers")
    parser.add_argument(
        "--peers-base", default=newest_python(), help="Python 3.12+ that makes this environment"
    )
    args = parser.parse_args()
    python = peers_python(args.peers_env.absolute(), args.peers_base)
    found = versions(python, [peer.name for peer in DEFAULTS])
    names = {name: f"{name} {version}" for name, version in found.items()}
    lines = [f"| {' | '.join(TITLES)} |", "|---|---|" + "---:|" * (len(TITLES) - 2)]
    print("\n".join(lines), flush=True)
    for row in rows_of(args, python, names):
        print(row, flush=True)
        lines.append(row)
    if args.results:
        head = (
            f"# The removals of others, audited\n\nMade by `make bench-audit`. {conditions()}\n\n"
        )
        args.results.write_text(head + "\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
