"""Measure SimHash: fingerprints of texts, all pairs of fingerprints, queries of an index; neardup and its peers.

Every case works in a process of its own on the same input; its answers are judged before any time is shown. Tools
take turns, so that a slow moment of the machine falls on all alike. See README.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import simhash_cases
from corpus import build
from environment import HERE, machine, peers_python, slug, versions
from measure import Measurement, run
from simhash_cases import SAMPLE_MB, Case
from simhash_check import Answers, Quality, judge_pairs, judge_queries, judge_texts
from simhash_data import Planted, plant
from simhash_report import Result, write_csv, write_markdown

_SHARED_SCRIPT = HERE.parent.parent / "shared" / "data" / "make_bulk.py"
_ONCE_ABOVE_S = 45


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=500, help="neardup's corpus in MB (default 500)")
    sizes = [10**5, 10**6, 10**7, 10**8]
    parser.add_argument("--sizes", nargs="+", type=int, default=sizes, help="fingerprints (default 10^5 to 10^8)")
    parser.add_argument("--runs", type=int, default=3, help="runs of a case that takes under 45 s (default 3)")
    parser.add_argument("--limit-s", type=float, default=400, help="a process ends after this (default 400)")
    parser.add_argument("--work", type=Path, default=HERE / "work", help="inputs and outputs (default work/)")
    parser.add_argument("--make-bulk", type=Path, default=_SHARED_SCRIPT, help="path of make_bulk.py")
    parser.add_argument("--peers-base", default=sys.executable, help="Python up to 3.12, of the peers' environments")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder of the results")
    return parser.parse_args()


class Bench:
    """The tools, their environments, and what was found."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.work: Path = args.work.resolve() / "simhash"
        self.work.mkdir(parents=True, exist_ok=True)
        first, second = (
            peers_python(HERE / f".venv-peers-{name}", args.peers_base, HERE / f"requirements-{name}.txt")
            for name in ("simhash", "simhash-pybind")
        )
        self.pythons = {"neardup": sys.executable, "faiss": first, "simhash": first, "pybind": second}
        self.versions = versions(sys.executable, ["neardup"]) | versions(first, ["faiss-cpu", "simhash"])
        self.versions |= versions(second, ["simhash-pybind"])
        self.results: list[Result] = []

    def once(self, case: Case, job: str, source: Path, options: dict[str, Any]) -> tuple[Measurement, Path]:
        """Do a job in a process; return what this took, and the stem of the files it left."""
        output = self.work / f"{case.script}-{job}"
        options = {**case.options, **options, "threads": case.threads}
        command = [self.pythons[case.script], case.path, job, str(source), str(output), json.dumps(options)]
        log = output.with_suffix(".log")
        took = run(command, log=log, timeout_s=self.args.limit_s)
        print(f"{job}, {source.stem}, {case.name}: {took.wall_s:.2f} s, {took.peak_mb:.0f} MB", flush=True)
        if took.code not in (0, 124):
            print(log.read_text()[-2000:])
        return took, output

    def rounds(self, results: list[Result], source: Path, options: dict[str, Any], judge: Any) -> None:
        """Run every case once and judge its answers; then run all again in rounds."""
        self.results += results
        for number in range(self.args.runs):
            for result in results:
                if number and (result.failed or result.processes[0].wall_s > _ONCE_ABOVE_S):
                    continue
                took, output = self.once(result.case, result.part, source, options)
                result.processes.append(took)
                if took.code:
                    continue
                told = json.loads(output.with_suffix(".done.json").read_text())
                result.times += [tuple(pair) for pair in told["times"]]
                result.facts = told["facts"]
                if number == 0:
                    result.quality = judge(np.load(output.with_suffix(".npz")), result)
                    print(f"    {result.quality}", flush=True)


def measure_texts(bench: Bench) -> None:
    """Measure fingerprints of texts: the peers on a sample, with the words that neardup cuts."""
    for megabytes in sorted({SAMPLE_MB, bench.args.mb}):
        corpus = build(megabytes, bench.args.work.resolve(), bench.args.make_bulk)
        cases, source = simhash_cases.texts(megabytes), corpus.parquet
        if megabytes == SAMPLE_MB:
            source = bench.work / "words.parquet"
            bench.once(cases[0], "words", corpus.parquet, {"output": str(source)})
        on = f"{corpus.megabytes:.1f} MB of text, {corpus.num_rows:,} documents"
        results = [Result("texts", on, corpus.megabytes, case, bench.versions[case.package]) for case in cases]
        bench.rounds(results, source, {}, lambda answers, _, source=source: judge_texts(answers, source))


def measure_fingerprints(bench: Bench) -> None:
    """Measure all pairs by size, then queries by size."""
    for part, cases_of in (("pairs", simhash_cases.pairs), ("queries", simhash_cases.queries)):
        for size in bench.args.sizes:
            planted = plant(size, bench.work)

            def judge(answers: Answers, result: Result, planted: Planted = planted) -> Quality:
                if result.part == "pairs":
                    return judge_pairs(answers, planted)
                return judge_queries(answers, planted, int(result.facts["queries"]))

            on = f"{size:,} fingerprints"
            cases = [case for case in cases_of(size) if size <= case.most]
            results = [Result(part, on, size, case, bench.versions[case.package]) for case in cases]
            options = {"queries": str(planted.queries)} if part == "queries" else {}
            bench.rounds(results, planted.fingerprints, options, judge)


def main() -> int:
    args = parse_arguments()
    load = f"{os.getloadavg()[0]:.1f}"
    bench = Bench(args)
    measure_texts(bench)
    measure_fingerprints(bench)
    facts = machine()
    args.results.mkdir(parents=True, exist_ok=True)
    name = f"{datetime.date.today().isoformat()}-simhash-{slug(facts)}.csv"
    write_csv(args.results / name, bench.results)
    write_markdown(args.results, bench.results, {**facts, "load": load}, bench.versions)
    print(f"written: results/{name}, results/simhash.md and its plot")
    wrong = [one for one in bench.results if one.case.ours and not one.usable]
    for one in wrong:
        print(f"{one.part}, {one.on}, {one.case.name}: {one.state}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
