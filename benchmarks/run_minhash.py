"""Measure MinHash: signatures of texts and of sets of tokens, LSH indexes of signatures; neardup
and its peers.

Every case works in a process of its own on the same input; its answers are judged before any time
is shown. Tools take turns, so that a slow moment of the machine falls on all alike. See README.md.
"""

from __future__ import annotations

import argparse
import datetime
import sys

import minhash_cases
from corpus import build
from environment import HERE, machine, peers_python, slug, versions
from minhash_check import judge_index, judge_sets, judge_texts
from minhash_data import plant
from minhash_report import write_markdown
from rounds import Bench, parse_arguments
from simhash_report import Result, write_csv

# similarities 0.50, 0.80, 0.90
_NUM_SETS = 50_000
_NUM_TOKENS = 100
_SHARED = (67, 89, 95)
# similarity 0.8, at which 0.95 of the pairs share a band
_FEW_TOKENS = 9
_FEW_SHARED = (8,)


def prepare(args: argparse.Namespace) -> Bench:
    """Return the bench with the peers' environment."""
    peers = ["datasketch", "rensa", "gaoya"]
    python = peers_python(
        HERE / ".venv-peers-minhash", args.peers_base, HERE / "requirements-minhash.txt"
    )
    named = versions(sys.executable, ["neardup"]) | versions(python, peers)
    return Bench(
        args, "minhash", {"neardup": sys.executable, **dict.fromkeys(peers, python)}, named
    )


def measure_texts(bench: Bench) -> None:
    """Measure signatures of texts by their n-grams of words, then of characters."""
    corpus = build(bench.args.mb, bench.args.work.resolve(), bench.args.make_bulk)
    for tokens in ("words", "chars"):
        on = f"{tokens}, {corpus.megabytes:.1f} MB of text, {corpus.num_rows:,} documents"
        cases = minhash_cases.texts(tokens)
        results = [
            Result("sign_texts", on, corpus.megabytes, case, bench.versions[case.package])
            for case in cases
        ]
        bench.rounds(
            results,
            corpus.parquet,
            {},
            lambda answers, _, kind=tokens: judge_texts(answers, corpus.parquet, kind),
        )


def measure_sets(bench: Bench) -> None:
    """Measure signatures of sets of tokens."""
    planted = plant(_NUM_SETS, _NUM_TOKENS, _SHARED, 3000, bench.work)
    on = f"{_NUM_SETS:,} sets of {_NUM_TOKENS} tokens"
    cases = minhash_cases.sets()
    results = [
        Result("sign_sets", on, _NUM_SETS, case, bench.versions[case.package]) for case in cases
    ]
    options = {"truth": str(planted.sets.with_suffix(".npz"))}
    bench.rounds(results, planted.sets, options, lambda answers, _: judge_sets(answers, planted))


def measure_index(bench: Bench) -> None:
    """Measure indexes, by number of signatures."""
    for size in bench.args.sizes:
        planted = plant(size, _FEW_TOKENS, _FEW_SHARED, size // 100, bench.work)
        signatures = bench.work / f"signatures-{size}.npy"
        cases = [case for case in minhash_cases.index() if size <= case.most]
        if not signatures.exists():
            bench.once(cases[0], "signatures", planted.sets, {"output": str(signatures)})
        results = [
            Result("index", f"{size:,} signatures", size, one, bench.versions[one.package])
            for one in cases
        ]
        options = {
            "signatures": str(signatures),
            "bands": minhash_cases.BANDS,
            "rows": minhash_cases.ROWS,
        }
        bench.rounds(
            results,
            planted.sets,
            options,
            lambda answers, _, planted=planted: judge_index(answers, planted),
        )


def main() -> int:
    args = parse_arguments(__doc__, "signatures", sizes=[10**5, 10**6], runs=2, once_above_s=10)
    bench = prepare(args)
    measure_texts(bench)
    measure_sets(bench)
    measure_index(bench)
    facts = machine()
    args.results.mkdir(parents=True, exist_ok=True)
    name = f"{datetime.date.today().isoformat()}-minhash-{slug(facts)}.csv"
    write_csv(args.results / name, bench.results)
    write_markdown(args.results, bench.results, facts, bench.versions)
    print(f"written: results/{name}, results/minhash.md")
    return bench.exit_code()


if __name__ == "__main__":
    sys.exit(main())
