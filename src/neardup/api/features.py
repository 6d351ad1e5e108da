"""Count the features of a corpus, for weights that depend on it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from neardup.documents.batch import Rejected
from neardup.engines.local.reading import count_corpus
from neardup.errors import SettingError
from neardup.features.idf import IdfTable
from neardup.formats.reading import known_total
from neardup.report.contents import incomplete_by
from neardup.report.stages import open_stages
from neardup.runs.incomplete import warn_if_incomplete
from neardup.runs.inputs import Source
from neardup.runs.run import TextOptions, run_of, spelled_out
from neardup.settings.methods import SimHash
from neardup.settings.presets import method_named
from neardup.settings.shingling import DocumentSettings

if TYPE_CHECKING:
    from typing_extensions import Unpack


@spelled_out(TextOptions)
def document_frequencies(
    source: Source,
    *,
    method: DocumentSettings | str = SimHash(),  # noqa: B008 - frozen
    **options: Unpack[TextOptions],
) -> IdfTable:
    """Count the documents of a corpus that contain each feature, as the table that TF-IDF needs.

    Parameters
    ----------
    source : as in `dedup`.
    method : the settings that cut texts into features, or the name of a method. For `page`, the features of the
        structure are counted, which are those that its index weighs.
    text_column, text_unit, in_format, max_document_bytes : as in `dedup`.
    threads, on_error, progress : as in `dedup`. A document that cannot be read is not counted; the table lists it as
        `rejected`.

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
    named: DocumentSettings = method_named(method) if isinstance(method, str) else method
    settings = getattr(named, "of_structure", None) or getattr(named, "shingling", None)
    if settings is None:
        raise SettingError(
            f"document_frequencies counts shingles of texts: got {named!r:.80}. Use MinHash(...) or SimHash(...)."
        )
    run = run_of(source, options, method=settings)
    rejected: list[Rejected] = []
    tasks, found, _ = run.find()
    with open_stages(run.progress) as stages, stages.stage("count", known_total(tasks)) as counting:
        table = count_corpus(tasks, found.shingling, run.threads, counting, run.rejecter(rejected.append))
    warn_if_incomplete({"incomplete": incomplete_by(rejected)}, run.settings.on_error)
    return replace(table, rejected=tuple(rejected))
