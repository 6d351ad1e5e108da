"""Find all pairs of duplicates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from neardup.arrays import Array, arrow_of
from neardup.candidates.hamming_join import join
from neardup.decide.outcome import Pairs
from neardup.decide.rules import Every
from neardup.engines.base import Engine, findings_of
from neardup.engines.choose import open_engine
from neardup.engines.local.searches import collect_near
from neardup.errors import InputError
from neardup.files import AnyPath, JsonObject
from neardup.fingerprints.fingerprints import Fingerprints, has_fingerprints, is_fingerprint_file
from neardup.fingerprints.gathered import FingerprintFile, Gathered
from neardup.fingerprints.sketches import require_same
from neardup.methods.registry import method_of
from neardup.output.job import Job, open_job
from neardup.output.tables import TableFile, pair_batches
from neardup.report.contents import fingerprint_pairs_report, search_fields
from neardup.report.record import PairsReport
from neardup.results import DuplicatePairs
from neardup.runs.find import FoundFile, LeftOut, Skip
from neardup.runs.input_files import find_once
from neardup.runs.overlap import refuse_replacing
from neardup.runs.refusals import refuse_together
from neardup.runs.run import PairOptions, Source, Unpack, named_paths, run_of, spelled_out
from neardup.schemas import DISTANCE, pairs_schema
from neardup.settings.methods import MethodSettings, method_named
from neardup.settings.run import SelectionSettings
from neardup.verify.measured import Measured


@spelled_out(PairOptions, is_reported=True)
def find_pairs(
    source: Source,
    *,
    method: MethodSettings | str | None = None,
    threshold: float | None = None,
    max_distance: int | None = None,
    output: AnyPath | None = None,
    overwrite: bool = False,
    tables: bool = True,
    max_bucket_size: int | None = None,
    **options: Unpack[PairOptions],
) -> DuplicatePairs:
    """Find all pairs of near-duplicates in a collection, with their exact similarity.

    Parameters
    ----------
    source : as in `dedup`; or Fingerprints, or files or a table of them, which need no text.
    method, threshold, max_distance : as in `dedup`. Default: minhash; simhash for fingerprints.
    overwrite, tables, engine, master : as in `dedup`.
    text_column, roles, id_column, text_unit, in_format, quote, max_document_bytes : as in `dedup`.
    threads, batch_rows, on_error, max_unreadable, progress : as in `dedup`.
    output : a file for the pairs: .parquet, .jsonl or .csv.
    max_bucket_size : as in `dedup`; default 1,000, 10,000 for containment. Pairs of later documents
        are missed; the report counts these documents.

    Returns
    -------
    DuplicatePairs

    Raises
    ------
    SettingError, InputError, ColumnError, OutputError
        As in `dedup`.
    SchemeError
        If fingerprints have different schemes.

    Examples
    --------
    >>> import neardup
    >>> neardup.find_pairs(["a b c d e f", "x y z", "A b c d e f."]).pairs.to_pylist()
    [{'left_id': '0', 'right_id': '2', 'similarity': 1.0, 'exact': True}]
    """
    file = None if output is None else TableFile(output, overwrite=overwrite)
    path = None if file is None else file.path
    collector = _PairCollector(file, tables)
    left_out = LeftOut()
    files = _fingerprints_of(source, path, left_out)
    if method is None:
        method = "simhash" if files else "minhash"
    run = run_of(
        "find_pairs",
        source,
        options,
        method=method_named(method, threshold, max_distance),
        selection=SelectionSettings(max_bucket_size=max_bucket_size),
        rule=Every(),
        outputs=(path,),
    )
    with open_job(run) as job:
        if files:
            refuse_together("pairs of fingerprints", engine=run.engine.engine)
            report = _pairs_of_fingerprints(files, job, collector, left_out.warnings())
        else:
            with open_engine(run) as opened:
                report = _pairs_of_documents(opened, job, collector)
        job.finished = report
    return DuplicatePairs(collector.table, report, path)


@dataclass
class _PairCollector:
    """Collects pairs in a file, in a table, or in both.

    in_memory : whether `table` is filled.
    """

    file: TableFile | None
    in_memory: bool
    table: pa.Table | None = None

    def collect(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        """Store all pairs. Batches are made as they are read, once only."""
        if self.in_memory:
            self.table = pa.Table.from_batches(batches, schema)
            # Batches can be made once only: the file is written from the table.
            batches = iter(self.table.to_batches())
        if self.file is not None:
            self.file.write(batches, schema)


def _pairs_of_documents(engine: Engine, job: Job, collector: _PairCollector) -> JsonObject:
    """Find the pairs among documents; return the report."""
    stages = job.stages
    decided = engine.decide(job)
    measures = decided.method.measures
    selection = decided.method.in_all_pairs(engine.run.selection)
    with stages.stage("write"):
        collector.collect(
            pair_batches(decided.outcome.pairs, decided.locations.ids, measures),
            pairs_schema(measures),
        )
    findings = findings_of(decided, engine.run, stages)._replace(selection=selection)
    report = PairsReport(
        **search_fields(findings), rejected=job.rejected(), engine=findings.engine.engine
    )
    return report.to_dict()


def _fingerprints_of(
    source: Source, output: AnyPath | None, skip: Skip
) -> dict[str, Fingerprints | FingerprintFile]:
    """Return the fingerprints of a source by the names of its parts; {} if it has texts.

    Raises
    ------
    InputError
        If some parts are fingerprints, and others texts.
    OutputError
        If the output would replace one of the files.
    """
    if isinstance(source, Fingerprints):
        return {"source": source}
    if isinstance(source, pa.Table) and has_fingerprints(source.schema):
        return {"source": Fingerprints._from_table(source, "source")}
    files = fingerprint_files(source, skip)
    refuse_replacing((output,), files)
    return {file.location: FingerprintFile(file.location) for file in files}


def fingerprint_files(source: Source, skip: Skip) -> list[FoundFile]:
    """Return the files of fingerprints that a source names; [] if it names texts, or is a table.

    skip : called for each file of a folder that is left out.

    Raises
    ------
    InputError
        If a path names nothing, or some files are fingerprints and others texts.
    """
    names = [name for name in named_paths(source) if name != "-"]  # standard input is text
    files = [file for file in find_once(names, None, skip) if file is not None]
    # A path that cannot be reached is not opened: a named pipe would wait for a writer.
    texts = [
        file.location for file in files if file.problem or not is_fingerprint_file(file.location)
    ]
    if texts and len(texts) < len(files):
        raise InputError(
            f"Some inputs are fingerprints and others are texts: {texts[0]} has no fingerprints. "
            "Create them first (neardup sign --method simhash), with the same settings."
        )
    return [] if texts else files


def _pairs_of_fingerprints(
    files: dict[str, Fingerprints | FingerprintFile],
    job: Job,
    collector: _PairCollector,
    warnings: list[str],
) -> JsonObject:
    """Find the pairs among fingerprints, without their texts; return the report."""
    run = job.run
    stages = job.stages
    first_name, first = next(iter(files.items()))
    radius = method_of(run.method).radius_of(first.scheme, first_name)
    for name, file in files.items():
        require_same(first.scheme, file.scheme, first_name, name)
    with stages.stage("read"):
        gathered = Gathered(files)
    with stages.stage("join"):
        joined = join(
            gathered.values, radius.bits, radius.max_distance, radius.num_blocks, run.threads
        )
        left, right, distance = collect_near(job.scratch, joined)
    with stages.stage("write"):
        batches = _near_batches(gathered, left, right, distance)
        collector.collect(batches, pairs_schema((DISTANCE,)))
    return fingerprint_pairs_report(
        first.scheme,
        gathered.counts,
        radius,
        len(left),
        stages,
        options=run.given,
        warnings=warnings,
    )


def _near_batches(
    gathered: Gathered, left: Array, right: Array, distance: Array
) -> Iterator[pa.RecordBatch]:
    """Return the table of pairs of fingerprints, batch by batch.

    left, right : integers (num_pairs,), positions in `gathered`. distance : integers (num_pairs,).
    """
    # Only the ids of fingerprints in pairs are read; rows are positions among these. Not with
    # return_inverse, which takes four times the memory.
    positions = np.unique(np.concatenate([left, right]))
    left_rows = np.searchsorted(positions, left).astype(np.uint32)
    right_rows = np.searchsorted(positions, right).astype(np.uint32)
    ids = gathered.ids(positions)
    measured = Measured({DISTANCE.name: distance.astype(np.uint16)})
    pairs = Pairs(left_rows, right_rows, measured)
    return pair_batches(pairs, lambda rows: ids.take(arrow_of(rows)), (DISTANCE,))
