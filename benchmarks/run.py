"""Compare neardup with its peers as whole processes that do the same job from the same file.

Answers come first: the first run of every tool is compared with exact truth (truth.py) before any
time is shown. Then times, in rounds, so that a slow moment of the machine falls on all tools alike.
See README.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shlex
import shutil
import sys
from pathlib import Path
from statistics import median

import pyarrow
from cases import DEFAULT_PEERS, YARDSTICKS, Case, copying, neardup, peer, word_count
from corpus import Corpus, build, is_chinese
from environment import HERE, first_line, machine, peers_python, slug, versions
from measure import Measurement, run
from truth import load_or_find, measure, removed_rows

from report import Result, Startup, write_csv, write_markdown

_SHARED_SCRIPT = HERE.parent.parent / "shared" / "data" / "make_bulk.py"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--mb", type=int, default=500, help="size of the large corpus in MB (default 500)"
    )
    parser.add_argument(
        "--scale-mb", type=int, default=125, help="neardup's second size (default 125; 0: none)"
    )
    parser.add_argument(
        "--peer-mb", type=int, default=60, help="size that all peers run on (default 60)"
    )
    parser.add_argument(
        "--peers", nargs="*", default=DEFAULT_PEERS, help="package or package:bands|estimate|exact"
    )
    parser.add_argument(
        "--peer-limit-s", type=float, default=600, help="a peer expected to take longer is left out"
    )
    parser.add_argument("--runs", type=int, default=3, help="runs of each case (default 3)")
    parser.add_argument(
        "--once-above-s", type=float, default=120, help="a case slower than this runs once"
    )
    parser.add_argument(
        "--sample", type=int, default=2000, help="documents compared with the truth (default 2000)"
    )
    parser.add_argument(
        "--neardup", default="neardup", help='command of neardup ("": leave it out)'
    )
    parser.add_argument(
        "--work", type=Path, default=HERE / "work", help="corpora and outputs (default work/)"
    )
    parser.add_argument(
        "--make-bulk", type=Path, default=_SHARED_SCRIPT, help="path of make_bulk.py"
    )
    parser.add_argument(
        "--peers-env", type=Path, default=HERE / ".venv-peers", help="environment of the peers"
    )
    parser.add_argument(
        "--peers-base", default=sys.executable, help="Python 3.12+ that makes this environment"
    )
    parser.add_argument(
        "--results", type=Path, default=HERE / "results", help="folder of the results"
    )
    return parser.parse_args()


class Bench:
    """The corpora in their folder, and what all cases share."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.work: Path = args.work.resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        self.peers_python = (
            peers_python(args.peers_env.absolute(), args.peers_base)
            if args.peers
            else sys.executable
        )
        self.ours = neardup(args.neardup) if args.neardup else []
        self.peers = [peer(spec, self.peers_python) for spec in args.peers]
        self.versions = versions(self.peers_python, sorted({case.package for case in self.peers}))
        self.versions["pyarrow"] = pyarrow.__version__
        self.versions["wc"] = first_line(["wc", "--version"]).rpartition(" ")[2]
        if self.ours:
            self.versions["neardup"] = first_line(
                [*shlex.split(args.neardup), "--version"]
            ).rpartition(" ")[2]

    def corpus(self, mb: int) -> Corpus:
        return build(mb, self.work, self.args.make_bulk)

    def once(
        self, case: Case, corpus: Corpus, env: dict[str, str] | None = None
    ) -> tuple[Measurement, Path]:
        """Run a case into an empty folder; return what it took, and the folder."""
        output = (
            self.work / "outputs" / f"{corpus.mb}-{case.name.replace(':', '-').replace(' ', '')}"
        )
        shutil.rmtree(output, ignore_errors=True)
        output.parent.mkdir(exist_ok=True)
        log = output.parent / (output.name + ".log")
        limit = max(4 * self.args.peer_limit_s, 600)
        took = run(
            case.arguments(corpus, output),
            log=log,
            env={"LC_ALL": "C.UTF-8", **(env or {})},
            timeout_s=limit,
        )
        if took.code:
            print(
                f"{case.name}: exit code {took.code}; the end of "
                f"{log.name}:\n{log.read_text()[-2000:]}"
            )
        return took, output

    def rounds(self, cases: list[Case], corpus: Corpus) -> list[Result]:
        """Run every case once and judge its answer; then run all again in rounds."""
        truth_file = self.work / f"truth-{corpus.mb}-{self.args.sample}.npz"
        truth = load_or_find(corpus.parquet, truth_file, sample=self.args.sample)
        chinese = is_chinese(corpus)
        results = [Result(case, corpus, self.versions[case.package]) for case in cases]
        for number in range(self.args.runs):
            for result in results:
                if number and (result.failed or result.runs[0].wall_s > self.args.once_above_s):
                    continue
                took, output = self.once(result.case, corpus)
                result.runs.append(took)
                if result.case.package == "neardup" and not took.code:
                    timings = json.loads((output / "report.json").read_text())["timings"]
                    result.stages.append({timing["stage"]: timing["seconds"] for timing in timings})
                if number == 0 and not took.code and result.case.package not in YARDSTICKS:
                    removed = removed_rows(output / "removed.parquet")
                    result.quality = {
                        "all": measure(truth, removed),
                        "not Chinese": measure(truth, removed, ~chinese),
                        "Chinese": measure(truth, removed, chinese),
                    }
                    print(
                        f"{corpus.mb} MB, {result.case.name}: {result.quality['all']}", flush=True
                    )
                print(
                    f"{corpus.mb} MB, run {number + 1}, {result.case.name}: {took.wall_s:.2f} s",
                    flush=True,
                )
                shutil.rmtree(output, ignore_errors=True)
        return results

    def startups(self, corpus: Corpus) -> list[Startup]:
        """Time neardup's help, its import, and its first run with an empty cache against the
        next.
        """
        log = self.work / "startup.log"

        cache = self.work / "numba-cache"
        shutil.rmtree(cache, ignore_errors=True)
        environment = {"NUMBA_CACHE_DIR": str(cache)}
        found = []
        for name in ("first run ever, compiling", "next run"):
            took = self.once(self.ours[0], corpus, environment)[0]
            if not took.code:
                found.append(Startup(f"{name} ({corpus.mb} MB)", took.wall_s))
        for name, command in (
            ("neardup --help", [*shlex.split(self.args.neardup), "--help"]),
            ("import neardup", [sys.executable, "-c", "import neardup"]),
            ("python -c pass, for comparison", [sys.executable, "-c", "pass"]),
        ):
            takes = [run(command, log=log) for _ in range(5)]
            if not any(take.code for take in takes):
                found.append(Startup(name, median(take.wall_s for take in takes)))
        return found


def run_all(bench: Bench) -> tuple[list[Result], list[Startup], list[str]]:
    """Return the results of all sizes, the start-up times, and notes on what was left out."""
    args = bench.args
    always = [word_count(), *copying(), *bench.ours]
    small = bench.corpus(args.peer_mb)
    if bench.ours:
        bench.once(bench.ours[0], small)
    startups = bench.startups(small) if bench.ours else []
    results = bench.rounds([*always, *bench.peers], small)
    notes: list[str] = []
    fast = []
    for result in results:
        if result.case in bench.peers:
            expected = result.median("wall_s") * args.mb / args.peer_mb
            if result.failed:
                notes.append(
                    f"{result.case.name} failed on {args.peer_mb} MB and was left out above that."
                )
            elif expected > args.peer_limit_s:
                notes.append(
                    f"{result.case.name} would take about {expected:.0f} s on {args.mb} MB; it ran "
                    f"on {args.peer_mb} MB only."
                )
            else:
                fast.append(result.case)
    if args.scale_mb not in (0, args.mb, args.peer_mb) and bench.ours:
        results += bench.rounds(always, bench.corpus(args.scale_mb))
    if args.mb != args.peer_mb:
        results += bench.rounds([*always, *fast], bench.corpus(args.mb))
    return results, startups, notes


def wrong_answers(results: list[Result]) -> list[str]:
    """Return what is wrong with neardup's answers, if anything."""
    found = []
    for result in results:
        if result.case.package == "neardup":
            if result.failed:
                found.append(f"neardup failed on {result.corpus.mb} MB.")
            elif not result.sound:
                found.append(
                    f"neardup's answer on {result.corpus.mb} MB is wrong: "
                    f"{result.quality.get('all')}"
                )
    return found


def main() -> int:
    args = parse_arguments()
    bench = Bench(args)
    results, startups, notes = run_all(bench)
    facts = machine()
    facts["peers_python"] = first_line([bench.peers_python, "--version"])
    problems = wrong_answers(results)
    args.results.mkdir(parents=True, exist_ok=True)
    name = f"{datetime.date.today().isoformat()}-{slug(facts)}.csv"
    write_csv(args.results / name, results, startups, bench.versions.get("neardup", ""))
    write_markdown(args.results / "latest.md", results, startups, facts, problems + notes)
    print(f"written: results/{name} and results/latest.md")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
