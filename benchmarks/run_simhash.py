"""Measure SimHash: fingerprints of texts, all pairs of fingerprints, queries of an index; neardup
and its peers.

Every case works in a process of its own on the same input; its answers are judged before any time
is shown. Tools take turns, so that a slow moment of the machine falls on all alike. See README.md.
"""

from __future__ import annotations

import argparse
import datetime
import sys

import simhash_cases
from corpus import build
from environment import HERE, machine, peers_python, slug, versions
from rounds import Bench, parse_arguments
from simhash_cases import SAMPLE_MB
from simhash_check import Answers, Quality, judge_pairs, judge_queries, judge_texts
from simhash_data import Planted, plant
from simhash_report import Result, write_csv, write_markdown


def measure_texts(bench: Bench) -> None:
    """Measure fingerprints of texts: the peers on a sample, with the words that neardup cuts."""
    for megabytes in sorted({SAMPLE_MB, bench.args.mb}):
        corpus = build(megabytes, bench.args.work.resolve(), bench.args.make_bulk)
        cases = simhash_cases.texts(megabytes)
        source = corpus.parquet
        if megabytes == SAMPLE_MB:
            source = bench.work / "words.parquet"
            bench.once(cases[0], "words", corpus.parquet, {"output": str(source)})
        on = f"{corpus.megabytes:.1f} MB of text, {corpus.num_rows:,} documents"
        results = [
            Result("texts", on, corpus.megabytes, case, bench.versions[case.package])
            for case in cases
        ]
        bench.rounds(
            results, source, {}, lambda answers, _, source=source: judge_texts(answers, source)
        )


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


def prepare(args: argparse.Namespace) -> Bench:
    """Return the bench with the peers' environments."""
    first, second = (
        peers_python(
            HERE / f".venv-peers-{name}", args.peers_base, HERE / f"requirements-{name}.txt"
        )
        for name in ("simhash", "simhash-pybind")
    )
    pythons = {"neardup": sys.executable, "faiss": first, "simhash": first, "pybind": second}
    named = versions(sys.executable, ["neardup"]) | versions(first, ["faiss-cpu", "simhash"])
    return Bench(args, "simhash", pythons, named | versions(second, ["simhash-pybind"]))


def main() -> int:
    sizes = [10**5, 10**6, 10**7, 10**8]
    args = parse_arguments(__doc__, "fingerprints", sizes=sizes, runs=3, once_above_s=45)
    bench = prepare(args)
    measure_texts(bench)
    measure_fingerprints(bench)
    facts = machine()
    args.results.mkdir(parents=True, exist_ok=True)
    name = f"{datetime.date.today().isoformat()}-simhash-{slug(facts)}.csv"
    write_csv(args.results / name, bench.results)
    write_markdown(args.results, bench.results, facts, bench.versions)
    print(f"written: results/{name}, results/simhash.md and its plot")
    return bench.exit_code()


if __name__ == "__main__":
    sys.exit(main())
