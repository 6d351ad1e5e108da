"""Count the features of a corpus, for weights that depend on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from neardup.documents.batch import Rejected
from neardup.engines.local.document_frequencies import count_corpus
from neardup.features.idf import IdfTable
from neardup.formats.reading import MAX_DOCUMENT_BYTES, known_total
from neardup.progress import Progress
from neardup.report.contents import incomplete_by
from neardup.report.stages import open_stages
from neardup.runs.incomplete import warn_if_incomplete
from neardup.runs.inputs import Inputs, Source
from neardup.runs.run import Run
from neardup.settings.methods import SimHash
from neardup.settings.presets import method_named
from neardup.settings.run import OnError, RunSettings, TextUnit
from neardup.settings.shingling import Shingling


def document_frequencies(
    source: Source,
    *,
    method: Shingling | str = SimHash(),  # noqa: B008 - frozen
    text_column: str | Sequence[str] | None = None,
    text_unit: TextUnit = "auto",
    in_format: str | None = None,
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
    threads: int | None = None,
    on_error: OnError = "reject",
    progress: bool | Progress = False,
) -> IdfTable:
    """Count the documents of a corpus that contain each feature, as the table that TF-IDF needs.

    Parameters
    ----------
    source, text_column, text_unit, in_format, max_document_bytes, threads, progress : as in `dedup`.
    on_error : as in `dedup`. A document that cannot be read is not counted; the table lists it as `rejected`.
    method : the settings that cut texts into features, or the name of a method. For `page`, the features of the
        structure are counted, which are those that its index weighs.

    Returns
    -------
    IdfTable

    Raises
    ------
    SettingError, InputError, ColumnError
        As in `dedup`.

    Examples
    --------
    >>> import neardup
    >>> table = neardup.document_frequencies(["the cat", "the dog", "a bird"])
    >>> neardup.lsh.keywords("the cat", table, top=1)[0][0]
    'cat'
    """
    named: Shingling = method if isinstance(method, Shingling) else method_named(method)
    run = Run(
        Inputs(source, None, text_column, None, text_unit, in_format, max_document_bytes),
        getattr(named, "of_structure", None) or named,
        settings=RunSettings(threads=threads, on_error=on_error),
    )
    rejected: list[Rejected] = []
    tasks, settings, _ = run.find()
    with open_stages(progress) as stages, stages.stage("count", known_total(tasks)) as counting:
        table = count_corpus(tasks, settings, run.threads, counting, run.rejecter(rejected.append))
    warn_if_incomplete({"incomplete": incomplete_by(rejected)}, on_error)
    return replace(table, rejected=tuple(rejected))
