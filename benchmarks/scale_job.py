"""One run at scale in a process of its own: what each stage takes in time, memory and disk, as
JSON.

python scale_job.py REPORT.json dedup OUT RESUME INPUT ...
python scale_job.py REPORT.json pairs OUT INPUT
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import neardup


class Meter:
    """Progress of a run that measures each stage.

    wall_s, cpu_s : of the stage. peak_bytes : the greatest memory of the process during the stage,
    pages of mapped files included. disk_bytes : of the scratch files at its end.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stages = []
        self.restart()

    def restart(self) -> None:
        """Begin to measure a stage."""
        self.began = time.perf_counter(), time.process_time()
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins at the present memory

    def begin(self, stage: str, total_documents: int | None) -> None:
        """Count the time between two stages as part of the later one."""

    def advance(self, documents: int, num_bytes: int) -> None:
        """Do nothing."""

    def end(self, stage: str, seconds: float) -> None:
        """Record a stage."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        self.stages.append(
            {
                "stage": stage,
                "wall_s": time.perf_counter() - self.began[0],
                "cpu_s": time.process_time() - self.began[1],
                "peak_bytes": peak_bytes(),
                "disk_bytes": sum(path.stat().st_size for path in files),
            }
        )
        self.restart()


def peak_bytes() -> int:
    """Return the greatest memory of this process since the last stage."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def main() -> None:
    """Run a job, and write what it took."""
    report_file, job, out, *arguments = sys.argv[1:]
    meter = Meter(Path(f"{out}.partial"))
    result: Any
    if job == "dedup":
        resume, *inputs = arguments
        result = neardup.dedup(
            inputs,
            output=out,
            resume=resume == "resume",
            write="removed",
            cache_bytes=0,
            tables=False,
            threads=2,
            progress=meter,
        )
    else:
        result = neardup.find_pairs(
            arguments[0],
            method="simhash",
            output=out,
            overwrite=True,
            tables=False,
            threads=2,
            progress=meter,
        )
    meter.end("end", 0.0)
    usage = os.times()
    facts = {"cpu_s": usage.user + usage.system, "stages": meter.stages}
    Path(report_file).write_text(json.dumps({**facts, "report": result.report}))


if __name__ == "__main__":
    main()
