"""Measure the durable index: adding, queries one by one and in batches, opening, size; and its
peers beside it.

Every case works in a process of its own; its answers are judged before any figure is shown. See
README.md.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from socket import socket
from typing import Any

import numpy as np
from environment import HERE, conditions, machine, peers_python, slug, versions
from measure import run
from simhash_data import Planted, plant
from simhash_plot import growth

_JOBS = HERE / "fingerprint_jobs"
_ROWS = (
    ("add_per_s", "batches of 100,000 added, documents/s, synced", "{:,.0f}"),
    ("query_p50_us", "query, median, µs", "{:,.0f}"),
    ("query_p99_us", "query, p99, µs", "{:,.0f}"),
    ("hit_p50_us", "of those that find something, median, µs", "{:,.0f}"),
    ("find_p50_us", "its look-up alone, median, µs", "{:,.0f}"),
    ("batch_per_s", "queries/s in batches of 10,000", "{:,.0f}"),
    ("compact_s", "compaction, s", "{:,.1f}"),
    ("compact_query_p50_us", "query after compaction, median, µs", "{:,.0f}"),
    ("compact_query_p99_us", "query after compaction, p99, µs", "{:,.0f}"),
    ("compact_hit_p50_us", "of those that find something, median, µs", "{:,.0f}"),
    ("compact_find_p50_us", "its look-up alone, median, µs", "{:,.0f}"),
    ("compact_batch_per_s", "queries/s in batches of 10,000", "{:,.0f}"),
    ("single_per_s", "add-if-new one by one, each synced, documents/s", "{:,.0f}"),
    ("single_p99_us", "p99, µs", "{:,.0f}"),
    ("group_per_s", "add-if-new in groups of 64, synced, documents/s", "{:,.0f}"),
    ("open_s", "open, s", "{:.3f}"),
    ("bytes", "bytes a document", "{:,.0f}"),
    ("adding_mb", "memory of adding, not mapped files, MB", "{:,.0f}"),
    ("compact_mb", "memory of compaction, MB", "{:,.0f}"),
    ("compact_disk_gb", "disk of compaction, GB", "{:,.1f}"),
    ("anonymous_mb", "memory of the process, not mapped files, MB", "{:,.0f}"),
)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument(
        "--sizes",
        nargs="+",
        type=int,
        default=[100_000, 1_000_000, 10_000_000],
        help="fingerprints",
    )
    parser.add_argument(
        "--minhash", nargs="+", type=int, default=[100_000, 1_000_000], help="sets of features"
    )
    parser.add_argument(
        "--peers", type=int, default=1_000_000, help="fingerprints of the peers; 0 for no peers"
    )
    parser.add_argument(
        "--redis",
        type=int,
        default=50_000,
        help="signatures of datasketch on Redis; 0 to leave it out",
    )
    parser.add_argument("--work", type=Path, default=HERE / "work", help="inputs and indexes")
    parser.add_argument(
        "--peers-base", default=sys.executable, help="Python up to 3.12, of the peers' environments"
    )
    parser.add_argument(
        "--results", type=Path, default=HERE / "results", help="folder of the results"
    )
    return parser.parse_args()


class Bench:
    """The cases that were run: their part, size, tool and facts."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.rows = []
        self.work = args.work.resolve() / "index"
        self.work.mkdir(parents=True, exist_ok=True)

    def job(
        self, python: str, script: str, job: str, source: str, options: dict[str, Any]
    ) -> tuple[dict, Any]:
        """Run a job in a process; return its facts and answers."""
        output = self.work / f"{script}-{job}"
        command = [
            python,
            str(_JOBS / f"{script}.py"),
            job,
            source,
            str(output),
            json.dumps(options),
        ]
        took = run(command, log=output.with_suffix(".log"), timeout_s=6 * 3600)
        if took.code:
            sys.exit(output.with_suffix(".log").read_text()[-3000:])
        done = json.loads(output.with_suffix(".done.json").read_text())
        facts = done["facts"] | {"peak_mb": took.peak_mb, "job_s": done["times"][0][0]}
        return facts, np.load(output.with_suffix(".npz"))

    def keep(self, part: str, size: int, tool: str, facts: dict[str, float]) -> None:
        print(
            f"{part} {size:,} {tool}: "
            + ", ".join(f"{name} {value:,.4g}" for name, value in facts.items()),
            flush=True,
        )
        self.rows.append((part, size, tool, facts))

    def facts(self, part: str, size: int, tool: str = "neardup") -> dict[str, float]:
        return next(
            (facts for row in self.rows for facts in [row[3]] if row[:3] == (part, size, tool)), {}
        )


def judge(answers: Any, planted: Planted, fingerprints: np.ndarray | None) -> None:
    """Exit unless every planted neighbour was found and, of fingerprints, nothing else is farther
    than 3 bits.
    """
    asked = planted.asked.reshape(-1)[:20_000]
    pairs = set(zip(answers["query"].tolist(), answers["row"].tolist(), strict=True))
    missed = [
        query for query, row in enumerate(asked.tolist()) if row >= 0 and (query, row) not in pairs
    ]
    allowed = (
        0 if fingerprints is not None else 0.01 * np.count_nonzero(asked >= 0)
    )  # recall of MinHash: 0.99
    if len(missed) > allowed:
        sys.exit(
            f"{len(missed)} planted neighbours were not found, such as that of query {missed[0]}."
        )
    if fingerprints is not None:
        queries = np.load(planted.queries).reshape(-1)[answers["query"]]
        far = np.bitwise_count(queries ^ fingerprints[answers["row"]]) > 3
        if far.any():
            sys.exit(f"{np.count_nonzero(far)} rows were found that are too far.")


def measure_neardup(bench: Bench) -> None:
    for size in bench.args.sizes:
        planted = plant(size, bench.work)
        options = {
            "size": size,
            "queries": str(planted.queries),
            "index": str(bench.work / "simhash.index"),
        }
        source = str(planted.fingerprints)
        facts, answers = bench.job(sys.executable, "neardup_index_jobs", "simhash", source, options)
        judge(answers, planted, np.load(planted.fingerprints, mmap_mode="r"))
        bench.keep("simhash", size, "neardup", facts)
    for size in bench.args.minhash:
        planted = plant(size, bench.work)
        np.save(bench.work / "asked.npy", planted.asked)
        options = {
            "size": size,
            "asked": str(bench.work / "asked.npy"),
            "index": str(bench.work / "minhash.index"),
        }
        facts, answers = bench.job(sys.executable, "neardup_index_jobs", "minhash", "-", options)
        judge(answers, planted, None)
        bench.keep("minhash", size, "neardup", facts)


def measure_peers(bench: Bench) -> dict[str, str]:
    """Measure faiss and a linear scan in memory, datasketch on Redis; return their versions."""
    names: dict[str, str] = {}
    args = bench.args
    if args.peers:
        python = peers_python(
            HERE / ".venv-peers-simhash", args.peers_base, HERE / "requirements-simhash.txt"
        )
        names |= versions(python, ["faiss-cpu"])
        planted = plant(args.peers, bench.work)
        for tool, more in (
            ("IndexBinaryMultiHash", {"hashes": [4, 16, 0]}),
            ("linear scan: IndexBinaryFlat", {}),
        ):
            ask = 10_000 if more else 200
            options = {"queries": str(planted.queries), "ask": ask, "threads": 1, **more}
            facts, _ = bench.job(
                python, "faiss_jobs", "queries", str(planted.fingerprints), options
            )
            shown = {
                "batch_per_s": ask / facts["job_s"],
                "bytes": facts["bytes"] / args.peers,
                "build_s": facts["build"],
            }
            bench.keep("simhash", args.peers, tool, shown)
    if args.redis and shutil.which("redis-server"):
        python = peers_python(
            HERE / ".venv-peers-redis", args.peers_base, HERE / "requirements-redis.txt"
        )
        names |= versions(python, ["datasketch", "redis"])
        with tempfile.TemporaryDirectory() as folder, socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
            free.close()
            server = subprocess.Popen(
                ["redis-server", "--port", str(port), "--dir", folder], stdout=subprocess.DEVNULL
            )
            try:
                time.sleep(1)
                facts, _ = bench.job(
                    python,
                    "datasketch_redis_jobs",
                    "redis",
                    "-",
                    {"size": args.redis, "port": port},
                )
            finally:
                server.terminate()
                server.wait()
        bench.keep("minhash", args.redis, "datasketch on Redis", facts)
    return names


def write(bench: Bench, names: dict[str, str]) -> None:
    """Write results/index.md, its plot and a CSV."""
    facts = machine()
    folder = bench.args.results
    date = datetime.date.today().isoformat()
    with open(folder / f"{date}-index-{slug(facts)}.csv", "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["part", "size", "tool", "metric", "value"])
        writer.writerows(
            (*row[:3], name, value) for row in bench.rows for name, value in row[3].items()
        )
    told = ", ".join(f"{name} {version}" for name, version in names.items())
    caveats = (
        (HERE / "index_caveats.md")
        .read_text()
        .format(**facts, conditions=conditions(), versions=told)
    )
    lines = ["# The durable index", "", caveats]
    for part, title in (
        ("simhash", "SimHash, distance 3"),
        ("minhash", "MinHash, threshold 0.8, 32 features a document"),
    ):
        sizes = sorted({row[1] for row in bench.rows if row[0] == part and row[2] == "neardup"})
        lines += [f"## {title}", "", "| | " + " | ".join(f"{size:,}" for size in sizes) + " |"]
        lines.append("|---|" + "---:|" * len(sizes))
        for name, title_of, shown in _ROWS:
            values = [bench.facts(part, size).get(name) for size in sizes]
            lines.append(
                f"| {title_of} | "
                + " | ".join("" if v is None else shown.format(v) for v in values)
                + " |"
            )
        for _, size, tool, facts_of in [
            row for row in bench.rows if row[0] == part and row[2] != "neardup"
        ]:
            told = ", ".join(
                f"{name} {value:,.3g}"
                for name, value in facts_of.items()
                if name not in ("peak_mb", "job_s")
            )
            lines += ["", f"{tool}, {size:,}: {told}."]
        lines.append("")
    curves = {
        name: [
            (row[1], row[3][metric])
            for row in bench.rows
            if row[:1] == ("simhash",) and metric in row[3]
        ]
        for name, metric in (
            ("query", "query_p50_us"),
            ("look-up", "find_p50_us"),
            ("after compaction", "compact_find_p50_us"),
        )
    }
    plot = growth(curves, title="Median query, SimHash", x_label="fingerprints", y_label="µs")
    (folder / "index-growth.svg").write_text(plot)
    (folder / "index.md").write_text("\n".join([*lines, "![growth](index-growth.svg)", ""]))


def main() -> None:
    args = parse()
    bench = Bench(args)
    measure_neardup(bench)
    names = versions(sys.executable, ["neardup", "numpy", "numba", "pyarrow"]) | measure_peers(
        bench
    )
    write(bench, names)


if __name__ == "__main__":
    main()
