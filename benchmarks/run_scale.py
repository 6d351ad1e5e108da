"""Measure runs at scale: gigabytes of text, a hundred million short documents, a billion
fingerprints.

    python run_scale.py --text FILE ... --gigabytes 30 --documents 100000000 --fingerprints
    1000000000 --alike

Each case is made from real text with known near-duplicates (scale_corpus.py), run in a process of
its own that measures each stage (scale_job.py), and judged before it is measured (scale_check.py).
Then the same run is killed in the middle and resumed, and the result compared row for row. Rows of
a case replace those in results/scale.csv, from which results/scale.md is made; so cases can be run
one by one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import scale_report
from environment import HERE, machine
from scale_check import judge, same_removals
from scale_corpus import Layout, layout_of, make, write_fingerprints, write_templates

_BASE_DOCUMENTS = 100_000  # of the run whose memory is the base
_CORES = 2


def run_job(work: Path, arguments: list[str], kill_after_s: float | None = None) -> dict[str, Any]:
    """Run scale_job.py and return its report with the wall time; kill it after some seconds if
    asked.
    """
    report = work / "job.json"
    report.unlink(missing_ok=True)
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, str(HERE / "scale_job.py"), str(report), *arguments]
    )
    try:
        code = process.wait(kill_after_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return {}
    if code:
        sys.exit(f"{' '.join(arguments)} ended with exit code {code}.")
    found: dict[str, Any] = json.loads(report.read_text())
    return found | {"wall_s": time.perf_counter() - began, "load": os.getloadavg()[1]}


def _load(layout: Layout) -> scale_report.Case:
    name = (
        f"{layout.num_documents:,} short documents"
        if layout.short
        else f"{layout.num_documents:,} long documents"
    )
    return scale_report.Case(name)


def _deduplicate(
    corpus: Path, out: Path, resume: str, kill_after_s: float | None = None
) -> dict[str, Any]:
    arguments = ["dedup", str(out), resume, str(corpus / "part-*.parquet")]
    return run_job(corpus, arguments, kill_after_s)


def _base_bytes(work: Path, args: argparse.Namespace) -> int:
    """Return the peak memory of a run over a few short documents."""
    layout = layout_of(seed=args.seed, files=1, gigabytes=None, documents=_BASE_DOCUMENTS)
    corpus = work / f"short-{_BASE_DOCUMENTS}"
    out = work / "out-base"
    make(corpus, args.text, layout, _CORES)
    shutil.rmtree(out, ignore_errors=True)
    _deduplicate(corpus, out, "anew")
    shutil.rmtree(out)
    return max(stage["peak_bytes"] for stage in _deduplicate(corpus, out, "anew")["stages"])


def measure_documents(work: Path, args: argparse.Namespace, layout: Layout) -> scale_report.Case:
    """Run one corpus as a whole, then killed and resumed."""
    corpus = work / f"{'short' if layout.short else 'long'}-{layout.num_documents}"
    case = _load(layout)
    began = time.perf_counter()
    facts = make(corpus, args.text, layout, _CORES)
    case.add("made in", time.perf_counter() - began, "s")
    base = _base_bytes(work, args)
    whole = work / f"out-{corpus.name}"
    again = work / f"out-{corpus.name}-resumed"
    for folder in (whole, again):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(f"{folder}.partial", ignore_errors=True)
    took = _deduplicate(corpus, whole, "anew")
    scheme = took["report"]["scheme"]
    bands = (scheme["num_hashes"] // args.rows_per_band, args.rows_per_band)
    quality = judge(corpus, layout, whole / "removed.parquet", bands, args.sample)
    scale_report.add_run(case, facts, took, base, quality)
    scale_report.save(args.results, case)
    print(case.name, quality, flush=True)
    if args.kill:
        killed = _deduplicate(corpus, again, "anew", args.kill_at * took["wall_s"])
        if killed:
            sys.exit("The run was complete before it was to be killed: pass a smaller --kill-at.")
        resumed = _deduplicate(corpus, again, "resume")
        case.add("killed after", args.kill_at * took["wall_s"], "s")
        case.add("resumed in", resumed["wall_s"], "s")
        case.add(
            "same result",
            float(same_removals(whole / "removed.parquet", again / "removed.parquet")),
            "bool",
        )
        shutil.rmtree(again)
        scale_report.save(args.results, case)
    shutil.rmtree(whole)
    return case


def measure_fingerprints(work: Path, args: argparse.Namespace, count: int) -> None:
    """Join fingerprints at distance 3, from a Parquet file with ids to one of pairs."""
    case = scale_report.Case(f"{count:,} fingerprints")
    path, planted = write_fingerprints(work, count)
    out = work / "pairs.parquet"
    took = run_job(work, ["pairs", str(out), str(path)])
    found = pq.read_table(out, columns=["left_id", "right_id"])
    left, right = (found[name].cast("int64").to_numpy() for name in ("left_id", "right_id"))
    keys = left * np.int64(count) + right if count < 3_000_000_000 else left
    missed = ~np.isin(planted[:, 0] * np.int64(count) + planted[:, 1], keys)
    scale_report.add_join(
        case, took, len(left), len(planted), int(missed.sum()), path.stat().st_size
    )
    scale_report.save(args.results, case)
    out.unlink()


def measure_alike(work: Path, args: argparse.Namespace) -> None:
    """Run growing numbers of near-identical documents: one template with fillings, and copies of
    one document.
    """
    for count in args.alike:
        case = scale_report.Case(f"{count:,} documents alike")
        corpus = work / f"alike-{count}"
        write_templates(corpus, args.text, count)
        out = work / "out-alike"
        shutil.rmtree(out, ignore_errors=True)
        took = run_job(work, ["dedup", str(out), "anew", str(corpus / "alike-*.parquet")])
        counts = took["report"]["counts"]
        case.add("documents", count, "")
        case.add("pairs measured", counts["compared"], "")
        case.add("removed", counts["removed"], "")
        case.add("processor seconds", took["cpu_s"], "s")
        scale_report.save(args.results, case)
        shutil.rmtree(out)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--text", type=Path, nargs="+", required=True, help="files of real text, column `text`"
    )
    parser.add_argument(
        "--gigabytes", type=float, nargs="*", default=[], help="corpora of long documents"
    )
    parser.add_argument(
        "--documents", type=int, nargs="*", default=[], help="corpora of short documents"
    )
    parser.add_argument(
        "--fingerprints", type=int, nargs="*", default=[], help="numbers of fingerprints to join"
    )
    parser.add_argument(
        "--alike", type=int, nargs="*", default=[], help="numbers of near-identical documents"
    )
    parser.add_argument("--files", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--sample", type=int, default=10_000, help="removals and planted pairs to judge"
    )
    parser.add_argument(
        "--rows-per-band", type=int, default=5, help="of the default bands, for the expected recall"
    )
    parser.add_argument(
        "--kill",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="kill a run, and resume it",
    )
    parser.add_argument(
        "--kill-at", type=float, default=0.3, help="share of the time of the whole run"
    )
    parser.add_argument(
        "--work", type=Path, default=HERE / "work" / "scale", help="corpora and outputs"
    )
    parser.add_argument("--results", type=Path, default=HERE / "results")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    failed = False
    for layout in [
        *(
            layout_of(seed=args.seed, files=args.files, gigabytes=size, documents=None)
            for size in args.gigabytes
        ),
        *(
            layout_of(seed=args.seed, files=args.files, gigabytes=None, documents=size)
            for size in args.documents
        ),
    ]:
        case = measure_documents(args.work, args, layout)
        failed |= case.values.get("wrong removals", 0) > 0 or case.values.get("same result", 1) == 0
    for count in args.fingerprints:
        measure_fingerprints(args.work, args, count)
    if args.alike:
        measure_alike(args.work, args)
    scale_report.write(args.results, machine())
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
