"""The command line of run_simhash.py and run_minhash.py, and their rounds: jobs in processes,
judged before timed.

Tools take turns, so that a slow moment of the machine falls on all alike.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from environment import HERE
from measure import Measurement, run
from simhash_cases import Case
from simhash_report import Result

_SHARED_SCRIPT = HERE.parent.parent / "shared" / "data" / "make_bulk.py"


def parse_arguments(about: str | None, sized: str, **defaults: Any) -> argparse.Namespace:
    """Parse the command line that both benchmarks share. sized : what `sizes` are numbers of."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--mb", type=int, default=500, help="neardup's corpus in MB")
    parser.add_argument("--sizes", nargs="+", type=int, help=f"numbers of {sized}")
    parser.add_argument("--runs", type=int, help="runs of a case")
    parser.add_argument("--once-above-s", type=float, help="a case that takes longer runs once")
    parser.add_argument("--limit-s", type=float, default=400, help="a process ends after this")
    parser.add_argument("--work", type=Path, default=HERE / "work", help="inputs and outputs")
    parser.add_argument(
        "--make-bulk", type=Path, default=_SHARED_SCRIPT, help="path of make_bulk.py"
    )
    parser.add_argument(
        "--peers-base", default=sys.executable, help="Python up to 3.12, of the peers' environments"
    )
    parser.add_argument(
        "--results", type=Path, default=HERE / "results", help="folder of the results"
    )
    parser.set_defaults(**defaults)
    return parser.parse_args()


class Bench:
    """The tools, their environments, and what was found."""

    def __init__(
        self,
        args: argparse.Namespace,
        folder: str,
        pythons: Mapping[str, str],
        versions: Mapping[str, str],
    ) -> None:
        self.args = args
        self.work: Path = args.work.resolve() / folder
        self.work.mkdir(parents=True, exist_ok=True)
        self.pythons = pythons
        self.versions = versions
        self.results: list[Result] = []

    def once(
        self, case: Case, job: str, source: Path, options: dict[str, Any]
    ) -> tuple[Measurement, Path]:
        """Do a job in a process; return what this took, and the stem of the files it left."""
        output = self.work / f"{case.script}-{job}"
        options = {**case.options, **options, "threads": case.threads}
        command = [
            self.pythons[case.script],
            case.path,
            job,
            str(source),
            str(output),
            json.dumps(options),
        ]
        log = output.with_suffix(".log")
        took = run(command, log=log, timeout_s=self.args.limit_s)
        print(
            f"{job}, {source.stem}, {case.name}: {took.wall_s:.2f} s, {took.peak_mb:.0f} MB",
            flush=True,
        )
        if took.code not in (0, 124):
            print(log.read_text()[-2000:])
        return took, output

    def rounds(
        self, results: list[Result], source: Path, options: dict[str, Any], judge: Any
    ) -> None:
        """Run every case once and judge its answers; then run all again in rounds."""
        self.results += results
        for number in range(self.args.runs):
            for result in results:
                if number and (
                    result.failed or result.processes[0].wall_s > self.args.once_above_s
                ):
                    continue
                took, output = self.once(result.case, result.part, source, options)
                result.processes.append(took)
                if took.code:
                    continue
                told = json.loads(output.with_suffix(".done.json").read_text())
                result.times += [tuple(pair) for pair in told["times"]]
                result.told.append(told["facts"])
                if number == 0:
                    result.quality = judge(np.load(output.with_suffix(".npz")), result)
                    print(f"    {result.quality}", flush=True)

    def exit_code(self) -> int:
        """Say which answers of neardup were wrong or missing; return 1 if any were."""
        wrong = [one for one in self.results if one.case.ours and not one.usable]
        for one in wrong:
            print(f"{one.part}, {one.on}, {one.case.name}: {one.state}", file=sys.stderr)
        return 1 if wrong else 0
