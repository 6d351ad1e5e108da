"""A run: what a user asked for, which an engine performs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple, TypedDict, TypeVar, cast

from neardup.documents.batch import Rejected
from neardup.documents.corpus import rejecter
from neardup.executor import count_threads
from neardup.formats.reading import Task
from neardup.methods.base import Method
from neardup.methods.registry import method_of
from neardup.progress import Progress
from neardup.runs.inputs import Inputs, Source, for_pages, tasks_of
from neardup.settings.methods import MinHash
from neardup.settings.run import OnError, RunSettings, SelectionSettings, TextUnit
from neardup.settings.shingling import DocumentSettings


class TextOptions(TypedDict, total=False):
    """How texts are read: the options of every function that reads them, as in `dedup`."""

    text_column: str | Sequence[str] | None
    text_unit: TextUnit
    in_format: str | None
    max_document_bytes: int
    threads: int | None
    on_error: OnError
    progress: bool | Progress


class ReadingOptions(TextOptions, total=False):
    """And their ids."""

    id_column: str | None


class BatchOptions(ReadingOptions, total=False):
    """And in which batches."""

    batch_rows: int | None


class CacheOptions(BatchOptions, total=False):
    """And how many of them are cached."""

    cache_bytes: int | None


_DEFAULTS = Inputs._field_defaults | {field.name: field.default for field in fields(RunSettings)} | {"progress": False}
_Function = TypeVar("_Function", bound=Callable[..., Any])


def spelled_out(options: type) -> Callable[[_Function], _Function]:
    """Give a function the signature with its options one by one, for help and completion; refuse other keywords."""

    def decorate(function: _Function) -> _Function:
        signature, kinds = inspect.signature(function), inspect.Parameter
        kept = [one for one in signature.parameters.values() if one.kind is not kinds.VAR_KEYWORD]
        spelled = [
            kinds(name, kinds.KEYWORD_ONLY, default=_DEFAULTS.get(name), annotation=annotation.__forward_arg__)
            for name, annotation in options.__annotations__.items()
        ]
        known = {one.name for one in (*kept, *spelled)}

        @functools.wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            for name in keywords.keys() - known:
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
            return function(*args, **keywords)

        call.__signature__ = signature.replace(parameters=[*kept, *spelled])  # type: ignore[attr-defined]
        return cast(_Function, call)

    return decorate


class Found(NamedTuple):
    """The inputs that were found, with their columns; the settings that compare them; what the user should know."""

    tasks: list[Task]
    settings: DocumentSettings
    warnings: list[str]

    @property
    def method(self) -> Method:
        """The method of the settings."""
        return method_of(self.settings)


@dataclass(frozen=True)
class Run:
    """The inputs, method and settings of a run.

    all_pairs : whether every pair is listed, and nothing is removed. resume : whether an interrupted run of the same
    output is continued. update : whether the documents are added to an index. copies : whether kept documents are
    written. table : the file of the output that has the file and the row of each document. progress : as in `dedup`.
    """

    inputs: Inputs
    method: DocumentSettings = field(default_factory=MinHash)
    selection: SelectionSettings = field(default_factory=SelectionSettings)
    settings: RunSettings = field(default_factory=RunSettings)
    all_pairs: bool = False
    resume: bool = False
    update: bool = False
    copies: bool = False
    table: str = "removed.parquet"
    progress: bool | Progress = False

    @property
    def threads(self) -> int:
        """The number of worker threads."""
        return count_threads(self.settings.threads)

    @property
    def options(self) -> dict[str, object]:
        """The options that an engine may refuse, by name."""
        against = None if self.inputs.against is None else "a collection"
        others = {"count_by": self.inputs.count_by, "resume": self.resume, "update": self.update}
        return asdict(self.selection) | asdict(self.settings) | others | {"against": against}

    @property
    def counted(self) -> str | None:
        """The column by whose values removals are counted."""
        return self.inputs.count_by or self.selection.within

    def find(self) -> Found:
        """Find the inputs and choose their columns; of web pages, the method compares the main text."""
        warnings: list[str] = []
        inputs = self.inputs._replace(vector_length=self.method.vector_length)
        tasks = tasks_of(inputs, self.selection.keep, warnings, within=self.selection.within)
        return Found(tasks, for_pages(self.method, tasks), warnings)

    def rejecter(
        self, use: Callable[[Rejected], None], before: str = "nothing is written"
    ) -> Callable[[Rejected], None]:
        """Return the function to call with each row that cannot be read; see documents.corpus.rejecter."""
        return rejecter(self.settings.on_error, use, before)


def run_of(source: Source, options: TextOptions, *, against: Source | None = None, **others: Any) -> Run:
    """Return a run over a source; options : how it is read. others : fields of the run."""
    values: dict[str, Any] = {**options}
    progress = values.pop("progress", False)
    settings = {field.name: values.pop(field.name) for field in fields(RunSettings) if field.name in values}
    return Run(Inputs(source, against, **values), settings=RunSettings(**settings), progress=progress, **others)
