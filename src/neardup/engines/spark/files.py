"""Write the folder of a run of dedup that no single machine could hold."""

from __future__ import annotations

import os
from typing import Any

from neardup.engines.base import Engine
from neardup.engines.spark import output
from neardup.engines.spark.engine import SparkEngine
from neardup.output import write
from neardup.output.directory import OutputDirectory
from neardup.progress import Stages
from neardup.report.contents import build_report
from neardup.report.dedup_html import render_report
from neardup.report.losses import warn_of_losses


def dedup_files(
    engine: Engine,
    folder: OutputDirectory,
    wanted: str,
    lang: str,
    scratch: str | os.PathLike[str] | None,
    stages: Stages,
) -> dict[str, Any]:
    """Remove the near-duplicates of files: workers write the kept documents, and the driver collects counts.

    Parameters
    ----------
    wanted : kept; or removed, to write no documents but removed.parquet.
    scratch : a folder that the driver and all workers share. Default: next to the output; for an address, which Spark
        must be configured to write to, the address with .partial at its end.

    Returns
    -------
    dict
        The report, which is in the folder too.
    """
    assert isinstance(engine, SparkEngine)
    shared, begun = output.SharedFolder(folder, scratch), False
    try:
        folder.refuse_inputs_inside(engine.paths())
        found = engine.run.find()
        tasks, method, warnings = found.tasks, found.method.resolve(), found.warnings
        folder.begin(resume=False)
        begun = True
        with engine.open(tasks, method, stages, shared) as (flow, corpus):
            outcome = flow.decide()
            with flow.named("write"):
                totals = output.summarise(outcome, tasks, method)
                output.write_removed(outcome, totals, tasks, method, shared, folder.result / "removed.parquet")
                lines = output.rejected_lines(outcome.light)
                (folder.result / "rejected.jsonl").write_text("".join(f"{line}\n" for line in lines), "utf-8")
                if wanted == "kept":
                    output.write_kept(corpus, outcome, totals, folder)
            with flow.named("report"):
                by_value = output.count_by_value(outcome, engine.run.counted)
                shown = output.show_examples(corpus, outcome, totals, tasks, method)
        engine.rounds = outcome.rounds
        warnings += warn_of_losses(tasks, totals, by_value)
        report = build_report("dedup", tasks, method, engine.run.selection, totals, stages, warnings)
        report |= {"write": wanted, "by_value": by_value, "lang": lang}
        engine.complete(report)
        write.write_report(report, render_report(report, shown), folder.result)
        folder.finish()
    except BaseException:
        folder.discard()
        if begun and folder.remote is not None:
            folder.remote.delete()
        raise
    finally:
        shared.delete()
    return report
