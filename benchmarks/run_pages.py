"""Measure web pages: whole runs from WARC to fingerprints or kept pages, their parts, pairs of
pages against a peer.

Answers are judged before any time is shown. Tools take turns, so that a slow moment of the machine
falls on all alike. See README.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from pathlib import Path

import numpy as np
import pages_cases
import pyarrow as pa
import pyarrow.parquet as pq
from environment import HERE, machine, peers_python, slug, versions
from measure import Measurement, run
from pages_check import judge_elements, judge_fingerprints, judge_pairs, judge_removed
from pages_data import NUM_PAGES, Crawl, build, large_pages
from pages_report import write_markdown
from rounds import Bench
from simhash_report import Result, write_csv

_DATA = HERE.parent.parent / "shared" / "data" / "html_sites"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=_DATA, help="the labelled pages, html_sites")
    parser.add_argument("--pages", type=int, default=NUM_PAGES, help="pages of the crawl")
    parser.add_argument("--runs", type=int, default=3, help="runs of a case")
    parser.add_argument(
        "--once-above-s", type=float, default=10, help="a case that takes longer runs once"
    )
    parser.add_argument("--limit-s", type=float, default=200, help="a process ends after this")
    parser.add_argument("--work", type=Path, default=HERE / "work", help="inputs and outputs")
    parser.add_argument(
        "--peers-base", default=sys.executable, help="Python of the peers' environment"
    )
    parser.add_argument(
        "--results", type=Path, default=HERE / "results", help="folder of the results"
    )
    return parser.parse_args()


def prepare(args: argparse.Namespace) -> Bench:
    """Return the bench with the peers' environment."""
    python = peers_python(
        HERE / ".venv-peers-pages", args.peers_base, HERE / "requirements-pages.txt"
    )
    named = versions(sys.executable, ["neardup", "resiliparse"])
    named |= versions(python, ["html-similarity", "lxml", "selectolax"])
    peers = dict.fromkeys(("html_similarity", "lxml", "selectolax"), python)
    return Bench(args, "pages", {"neardup_pages": sys.executable, **peers}, named)


def measure_runs(bench: Bench, crawl: Crawl) -> None:
    """Measure whole runs of neardup: the time of all of a process, from its start."""
    on = f"{len(crawl.sources):,} pages, {crawl.average_kb:.0f} KB each on average"
    results = [
        Result("runs", on, len(crawl.sources), case, bench.versions[case.package])
        for case in pages_cases.runs()
    ]
    _command(bench, results[0], crawl)  # compiles
    pages = large_pages(bench.args.data)
    for number in range(bench.args.runs):
        for result in results:
            if number and (result.failed or result.processes[0].wall_s > bench.args.once_above_s):
                continue
            took, output = _command(bench, result, crawl)
            result.processes.append(took)
            if took.code:
                continue
            result.times.append((took.wall_s, took.cpu_s))
            if number == 0:
                arguments = result.case.options["arguments"]
                is_dedup = result.case.options["command"] == "dedup"
                result.quality = (
                    judge_removed(output, crawl, content="content" in arguments)
                    if is_dedup
                    else judge_fingerprints(output, crawl, pages, shingles="tags" in arguments)
                )
                print(f"    {result.quality}", flush=True)
    bench.results += results


def _command(bench: Bench, result: Result, crawl: Crawl) -> tuple[Measurement, Path]:
    """Run the command line of a case; return what it took and where its output is."""
    options = result.case.options
    output = bench.work / ("kept" if options["command"] == "dedup" else "fingerprints.parquet")
    command = [
        sys.executable,
        "-m",
        "neardup",
        options["command"],
        str(crawl.warc),
        "-o",
        str(output),
        "--overwrite",
    ]
    command += [*options["arguments"], "--threads", str(result.case.threads)]
    took = run(command, log=bench.work / "run.log", timeout_s=bench.args.limit_s)
    print(
        f"{result.case.name}: {took.wall_s:.2f} s, {took.cpu_s:.2f} CPU s, {took.peak_mb:.0f} MB",
        flush=True,
    )
    return took, output


def measure_parts(bench: Bench, crawl: Crawl) -> dict[str, float]:
    """Return the CPU seconds of each part of a fingerprint, on one thread."""
    took, output = bench.once(pages_cases.PARTS, "parts", crawl.warc, {})
    return {} if took.code else json.loads(output.with_suffix(".done.json").read_text())["facts"]


def measure_pairs(bench: Bench) -> None:
    """Compare pairs of pages: a page twice, two of one site, two of different sites."""
    # html-similarity reads no strings that begin with an XML declaration: it prints so, and says 0.
    pages = [page for page in large_pages(bench.args.data) if "<?xml" not in page.html[:100]]
    draw = np.random.default_rng(5)
    places = draw.permutation(len(pages))[: pages_cases.PAIRS].tolist()
    rows = []
    for turn, place in enumerate(places):
        kind = ("identical", "one_site", "unrelated")[turn % 3]
        page = pages[place]
        others = [
            one
            for one in pages
            if (one.site == page.site) == (kind == "one_site") and one is not page
        ]
        other = (
            page if kind == "identical" or not others else others[int(draw.integers(len(others)))]
        )
        rows.append((page.html, other.html, kind if other is not page else "identical"))
    left, right, kinds = zip(*rows, strict=True)
    source = bench.work / "pairs.parquet"
    pq.write_table(pa.table({"left": left, "right": right}), source)
    average = sum(map(len, left + right)) / (2000 * len(rows))
    on = f"{len(rows)} pairs of pages, {average:.0f} KB each page on average"
    results = [
        Result("pairs", on, len(rows), case, bench.versions[case.package])
        for case in pages_cases.pairs()
    ]
    bench.rounds(
        results, source, {}, lambda answers, _: judge_pairs(answers["similarities"], kinds)
    )


def measure_parsers(bench: Bench) -> None:
    """Parse pages and do no more."""
    pages = [page.html for page in large_pages(bench.args.data)[: pages_cases.PARSED]]
    source = bench.work / "parsed.parquet"
    pq.write_table(pa.table({"html": pages}), source)
    on = (
        f"{len(pages)} pages, {sum(len(page.encode()) for page in pages) / len(pages) / 1000:.0f} "
        "KB each on average"
    )
    results = [
        Result("parse", on, len(pages), case, bench.versions[case.package])
        for case in pages_cases.parsers()
    ]
    bench.rounds(results, source, {}, lambda answers, _: judge_elements(answers["elements"], pages))


def main() -> int:
    args = parse_arguments()
    bench = prepare(args)
    crawl = build(args.data, bench.work, args.pages)
    measure_runs(bench, crawl)
    parts = measure_parts(bench, crawl)
    measure_pairs(bench)
    measure_parsers(bench)
    facts = machine() | {
        "average": f"{crawl.average_kb:.0f}",
        "pages": f"{args.pages:,}",
        "megabytes": f"{crawl.warc.stat().st_size / 1e6:.0f}",
    }
    args.results.mkdir(parents=True, exist_ok=True)
    name = f"{datetime.date.today().isoformat()}-pages-{slug(facts)}.csv"
    write_csv(args.results / name, bench.results)
    write_markdown(args.results, bench.results, parts, args.pages, facts, bench.versions)
    print(f"written: results/{name}, results/pages.md")
    return bench.exit_code()


if __name__ == "__main__":
    sys.exit(main())
