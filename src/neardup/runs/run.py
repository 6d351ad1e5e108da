"""Describe a run: the inputs that a user named, recognised in this module only, and the settings
that an engine performs.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, TypeVar, cast

import numpy as np
import pyarrow as pa

from neardup.arrays import flatten_strings
from neardup.decide.priority import rank_columns
from neardup.decide.rule import Rule
from neardup.decide.sieve import Sieve
from neardup.documents.batch import Columns, Reject, rejecter
from neardup.documents.pages import TEXT_COLUMN
from neardup.errors import ColumnError, InputError, SettingError
from neardup.executor import count_threads
from neardup.files import AnyPath, JsonObject, public_address
from neardup.fingerprints.fingerprints import Fingerprints, has_fingerprints
from neardup.fingerprints.signatures import Signatures
from neardup.formats.reading import InputFile, Part, Task, UnreachableInput
from neardup.formats.registry import format_of
from neardup.formats.tables import TablePart, splits_of
from neardup.methods.base import Method
from neardup.methods.registry import method_of
from neardup.progress import Progress, check_progress
from neardup.runs.columns import check_ordered, check_roles, choose_columns
from neardup.runs.find import LeftOut, Skip
from neardup.runs.input_files import list_inputs
from neardup.runs.options import ReadingSettings
from neardup.runs.overlap import Output, refuse_replacing
from neardup.settings.constraints import (
    ColumnNames,
    Options,
    check_columns,
    check_flag,
    constraints_of,
    plain,
    suggestion,
)
from neardup.settings.jieba import JIEBA, Jieba
from neardup.settings.methods import (
    CODE_TOKENS,
    METHODS,
    DocumentSettings,
    MethodSettings,
    MinHash,
    SimHash,
    Vectors,
)
from neardup.settings.run import (
    MAX_DOCUMENT_BYTES,
    Engine,
    EngineSettings,
    FolderSettings,
    Keep,
    Linkage,
    OnError,
    Quote,
    RunSettings,
    SelectionSettings,
    TextUnit,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack
else:
    Unpack = dict  # typing has it from Python 3.11 on; only type checkers read the annotations

Source = Any
"""A path, a glob, an address, a list of these or of texts, or an object with Arrow's PyCapsule
stream.
"""

AnyMethod = TypeVar("AnyMethod", bound=DocumentSettings)


class Inputs(NamedTuple):
    """The inputs of a run and how to read them; as in `dedup`.

    vector_length : see `Columns`; if it is 0, all vectors have the length of the first. reserved :
    names of columns that the source must not have, each with the option that adds it. count_by :
    the column by whose values removals are counted. described : further columns whose values are
    stored for each document. ordered : columns of these that have numbers or dates, of one type in
    all inputs. copies : whether rows are written in the format of their input. cuts : whether
    passages are cut from the texts. adds : whether columns are added to rows. only_code : whether
    the method compares source code, so that the other files of repositories are left out.
    """

    source: Source
    against: Source | None = None
    text_column: ColumnNames = None
    roles: ColumnNames = None
    id_column: ColumnNames = None
    text_unit: TextUnit = "auto"
    in_format: str | None = None
    quote: Quote = "double"
    max_document_bytes: int = MAX_DOCUMENT_BYTES
    reserved: Mapping[str, str] = {}
    count_by: str | None = None
    described: tuple[str, ...] = ()
    ordered: tuple[str, ...] = ()
    vector_length: int | None = None
    copies: bool = False
    cuts: bool = False
    adds: bool = False
    only_code: bool = False


def tasks_of(
    inputs: Inputs, keep: Keep, warnings: list[str] | None = None, *, within: str | None = None
) -> list[Task]:
    """Return the parts to read, the earlier collection first; append warnings about skipped
    files.
    """
    skipped = LeftOut()
    max_bytes = inputs.max_document_bytes
    tasks = []
    if inputs.against is not None:
        parts = parts_of(inputs.against, inputs, "against", skipped)
        # The earlier collection has no ranks, and only values that limit comparisons.
        against = inputs._replace(count_by=None, described=(), ordered=())
        if _lacks(parts, inputs.text_column):
            against = against._replace(text_column=None, roles=None)
        columns = _columns_of(parts, against, [], within)
        inputs = inputs._replace(vector_length=columns.vector_length)
        tasks += [Task(part, columns, against=True, max_document_bytes=max_bytes) for part in parts]

    parts = parts_of(inputs.source, inputs, "source", skipped)
    _refuse_reserved(parts, inputs.reserved)
    columns = _columns_of(parts, inputs, rank_columns(keep), within)
    tasks += [Task(part, columns, against=False, max_document_bytes=max_bytes) for part in parts]

    if warnings is not None:
        warnings += skipped.warnings()
    return tasks


def _columns_of(
    parts: Sequence[Part],
    inputs: Inputs,
    ranks: Sequence[str],
    within: str | None,
) -> Columns:
    """Return the columns to read, with the length of the first vector if it is not given."""
    # `within` comes first; readers of the others look up their position.
    values = dict.fromkeys((within, inputs.count_by, *inputs.described))
    try:
        columns = choose_columns(
            parts,
            inputs.text_column,
            inputs.id_column,
            ranks,
            [name for name in values if name is not None],
            vector_length=inputs.vector_length,
        )
        check_ordered(parts, inputs.ordered)
        roles = names_of_roles(inputs.roles)
        if roles:
            check_roles(parts, columns.texts)
    except ColumnError:
        # A table of fingerprints has no text column either, and gets a sentence of its own.
        _refuse_fingerprints(parts)
        raise
    columns = columns._replace(
        counted=inputs.count_by or within, described=inputs.described, roles=tuple(roles)
    )
    if columns.vector_length == 0:
        return columns._replace(vector_length=_first_length(parts, columns))
    return columns


def names_of_roles(roles: ColumnNames) -> list[str]:
    """Return the names of roles, which may be separated by commas."""
    several = [roles] if isinstance(roles, str) else roles or []
    names = [name.strip() for text in several for name in text.split(",")]
    names = [name for name in names if name]
    if roles is not None and not names:
        raise SettingError(
            f"roles (--roles) must name a role: got {roles!r}. Name some, as in 'user,assistant', "
            "or leave it out, which takes all turns."
        )
    return names


def _first_length(parts: Sequence[Part], columns: Columns) -> int:
    """Return the length of the first vector; 0 if there is none."""
    for part in parts:
        for batch in Task(part, columns, against=False).read(lambda _: None):
            sizes = np.diff(flatten_strings(batch.text)[1])
            if sizes.any():
                return int(sizes[sizes > 0][0]) // 4  # float32 numbers
    return 0


def _lacks(parts: Sequence[Part], text_column: ColumnNames) -> bool:
    """Return whether no part has any of the named columns of the text."""
    named = [text_column] if isinstance(text_column, str) else text_column or []
    return not any(name in (part.column_types() or {}) for part in parts for name in named)


_WITHOUT = {"write='annotated'": "use write='mask' (--write mask)"}
"""Advice to do without an option that adds columns, besides leaving it out."""
_USES = {
    "fingerprints": "Find the pairs among them with find_pairs (neardup find-pairs).",
    "signatures": "Search them with LSHIndex.",
}


def _refuse_fingerprints(parts: Sequence[Part]) -> None:
    """Raise ColumnError if a part is a table of fingerprints or signatures."""
    for part in parts:
        types = part.column_types() or {}
        if "signature" in types or has_fingerprints(pa.schema(list(types.items()))):
            kind = "signatures" if "signature" in types else "fingerprints"
            raise ColumnError(
                f"{part.name} is a table of {kind}, without a column of texts: got "
                f"{', '.join(types)}. {_USES[kind]} To read another column as the text, name it: "
                "text_column (--text-column)."
            )


def _refuse_reserved(parts: Sequence[Part], reserved: Mapping[str, str]) -> None:
    for part in parts if reserved else ():
        taken = next((name for name in part.column_types() or () if name in reserved), None)
        if taken is not None:
            option = reserved[taken]
            names = ", ".join(name for name in reserved if reserved[name] == option)
            raise ColumnError(
                f"{part.name} has a column '{taken}', and {option} adds columns with these names: "
                f"{names}. Rename the column, or {_WITHOUT.get(option, f'leave {option} out')}."
            )


def for_pages(method: AnyMethod, tasks: Sequence[Task]) -> AnyMethod:
    """Return the method for these inputs: for web pages it compares the main text, unless it is set
    otherwise.

    Pages are HTML and WARC files, and tables whose text column is named html.

    Raises
    ------
    InputError
        If some inputs are pages and others texts, and the method does not read all as pages.
    """
    # Their contents are not known; the run reports them as lost.
    tasks = [task for task in tasks if not isinstance(task.part, UnreachableInput)]
    pages = [task.part for task in tasks if has_pages(task)]
    paged = method.of_pages() if pages else method
    if paged is method:
        return method
    other = next((task.part for task in tasks if not has_pages(task)), None)
    if other is not None:
        raise InputError(
            f"Some inputs are web pages and others are texts: {pages[0].name} and {other.name}. "
            "Run them separately, by a pattern such as 'docs/**/*.txt', or read all of them as "
            "pages: html='main' (--html main), or method='structure' (--method structure)."
        )
    return paged


def has_pages(task: Task) -> bool:
    """Return whether the documents of an input are web pages, whose text is in their HTML."""
    if task.part.is_pages:
        return True
    # As the column was recognised.
    return task.columns.text.casefold() == TEXT_COLUMN and task.part.column_types() is not None


def parts_of(source: Source, inputs: Inputs, name: str, skip: Skip) -> Sequence[Part]:
    paths = named_paths(source)
    if paths:
        return list_inputs(
            paths,
            unit=inputs.text_unit,
            format_name=inputs.in_format,
            only_code=inputs.only_code,
            quote=inputs.quote,
            skip=skip,
        )
    # They have no texts, and would otherwise be taken for a table.
    if isinstance(source, (Fingerprints, Signatures)):
        kind = type(source).__name__.lower()
        raise InputError(f"{source!r} are {kind}, without texts. {_USES[kind]}")
    if isinstance(source, TablePart):
        return [source]
    splits = splits_of(source)
    if splits is None:
        return [TablePart(source, name)]
    return [TablePart(split, key) for key, split in splits.items()]


def named_paths(source: Source) -> list[str]:
    """Return the paths that a source names; none if it is texts or a table."""
    # A single string is always a path: a text would be a collection of one document.
    if isinstance(source, (str, os.PathLike)):
        return [os.fsdecode(source)]
    if not isinstance(source, (list, tuple)) or not all(
        isinstance(item, (str, os.PathLike)) for item in source
    ):
        return []
    # A list of strings names paths only if all look like paths; otherwise it is a list of texts.
    named = all(isinstance(item, os.PathLike) or looks_like_path(item) for item in source)
    # Not fspath: an entry of `os.scandir(b".")` has a path of bytes.
    return [os.fsdecode(item) for item in source] if named else []


_MAX_NAME = 255  # of a file on all systems, in bytes or characters


def looks_like_path(text: str) -> bool:
    """Return whether a string is a path that exists or has a known suffix, a pattern, an address,
    or standard input.
    """
    if text == "-":
        return True
    # No path of Linux is longer, and a null character is an error of the system calls below.
    if len(text) > 4096 or "\n" in text or "\0" in text or not text.strip():
        return False
    # No file has a longer name, and the system would be asked for it in vain.
    if len(os.path.basename(text)) <= _MAX_NAME and os.path.exists(text):
        return True
    # A pattern names a folder, so that a short text such as "Really?" is none.
    is_pattern = "/" in text and any(mark in text for mark in "*?[")
    # A sentence may end in a name such as "notes.txt".
    return " " not in text and ("://" in text or is_pattern or format_of(text)[0] is not None)


class TextOptions(TypedDict, total=False):
    """The options of every function that reads texts, as in `dedup`."""

    text_column: ColumnNames
    roles: ColumnNames
    text_unit: TextUnit
    in_format: str | None
    quote: Quote
    max_document_bytes: int
    threads: int | None
    on_error: OnError
    max_unreadable: float
    progress: bool | Progress


class ReadingOptions(TextOptions, total=False):
    """The options of functions that read texts and ids."""

    id_column: ColumnNames


class BatchOptions(ReadingOptions, total=False):
    """The options of functions that read texts and ids in batches."""

    batch_rows: int | None


class FolderOptions(BatchOptions, total=False):
    """The options of functions that write a folder."""

    output: AnyPath | None
    overwrite: bool
    scratch: AnyPath | None
    resume: bool


class CacheOptions(FolderOptions, total=False):
    """The options of functions that cache the documents they read, and write a folder."""

    cache_bytes: int | None


class EngineOptions(TypedDict, total=False):
    """The options of functions that several engines perform."""

    engine: Engine
    master: str | None


class PairOptions(BatchOptions, EngineOptions, total=False):
    """The options of functions that search for pairs on several engines."""


class CountOptions(TextOptions, EngineOptions, total=False):
    """The options of functions that count features on several engines."""


class CorpusOptions(FolderOptions, EngineOptions, total=False):
    """The options of functions that search a corpus on several engines, and write a folder."""


class SelectionOptions(CacheOptions, EngineOptions, total=False):
    """The options of functions that choose documents to keep."""

    keep: Keep
    within: str | None
    linkage: Linkage
    max_bucket_size: int | None
    recall_sample: int


_SETTINGS = (RunSettings, FolderSettings, EngineSettings, SelectionSettings)
_DEFAULTS = (
    Inputs._field_defaults
    | {field.name: field.default for settings in _SETTINGS for field in fields(settings)}
    | {"progress": False}
)
_ADVICE = {"rethreshold": "Pass the other thresholds to result.rethreshold."}
"""Advice for a flag that is neither True nor False, besides changing it."""
_Function = TypeVar("_Function", bound=Callable[..., Any])


def spelled_out(options: type, *, is_reported: bool = False) -> Callable[[_Function], _Function]:
    """Give a function the signature with its options one by one, for help and completion.

    The function refuses other keywords, and flags that are neither True nor False. is_reported :
    whether it is passed its options as a report has them, as the option `given`.
    """

    def decorate(function: _Function) -> _Function:
        signature = _spelled_signature(function, options)
        parameters = signature.parameters
        # Annotations are strings, because the modules postpone their evaluation.
        flags = {name for name in parameters if parameters[name].annotation == "bool"}
        defaults = {name: parameters[name].default for name in parameters}

        @functools.wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            for name in keywords.keys() - defaults.keys():
                # As Python does for a function with these parameters.
                raise TypeError(
                    f"{function.__name__}() got an unexpected keyword argument {name!r}."
                    f"{_advice_on(name, parameters)}"
                )
            for name in flags & keywords.keys():
                keywords[name] = check_flag(name, keywords[name], _ADVICE.get(name, ""))
            if is_reported:
                arguments = dict(zip(defaults, args, strict=False)) | keywords
                keywords["given"] = reported_options(arguments, defaults)
            return function(*args, **keywords)

        call.__signature__ = signature  # type: ignore[attr-defined]
        return cast(_Function, call)

    return decorate


def _advice_on(name: str, parameters: Mapping[str, Any]) -> str:
    """Return how to pass a setting of a method, or the parameter that a misspelt name is close to;
    empty if it is neither.
    """
    kinds = [kind for kind in (MinHash, SimHash, Vectors) if name in constraints_of(kind)]
    if not kinds or "method" not in parameters:
        return suggestion(name, parameters)
    names = " and ".join(kind.__name__ for kind in kinds)
    return f" It is a setting of {names}: pass method=neardup.{kinds[0].__name__}({name}=...)."


def _spelled_signature(function: Callable[..., Any], options: type) -> inspect.Signature:
    """Return the signature of a function with a keyword for each option instead of `**options`."""
    signature = inspect.signature(function)
    parameters = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    for name, annotation in options.__annotations__.items():
        option = inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            # Options that are not there have the default None.
            default=_DEFAULTS.get(name),
            # A TypedDict keeps its annotations as ForwardRef.
            annotation=annotation.__forward_arg__,
        )
        parameters.append(option)
    return signature.replace(parameters=parameters)


_SOURCES = {
    "source": "inputs",
    "items": "inputs",
    "against": "against",
    "corpus": "corpus",
    "kept": "kept",
}
"""The parameters that are collections, with their names on the command line."""
_MAX_NAMES = 1000  # names of inputs in a report
_UNREPORTED = {
    *constraints_of(FolderSettings),
    *constraints_of(EngineSettings),
    "tables",
    "rethreshold",
    "threads",
    "batch_rows",
    "cache_bytes",
    "progress",
}
"""The options that do not change a result: its location, and the use of the machine."""


def reported_options(arguments: Options, defaults: Options) -> JsonObject:
    """Return the options of a call that change its result, by their names on the command line, as
    values for JSON.

    Options with their default value are left out. A value that JSON cannot represent, such as a
    table or a function, is None.
    """
    options: JsonObject = {}
    for name in arguments.keys() - _UNREPORTED:
        value = plain(arguments[name])
        if isinstance(value, MethodSettings):
            given = method_options(value).items()
            options |= {key: setting for key, setting in given if setting != defaults.get(key)}
        elif name in _SOURCES and value is not None:
            options[_SOURCES[name]] = _reported_names(value)
        # Types are compared, too, since 1 equals True.
        elif (type(value), value) != (type(defaults[name]), defaults[name]):
            options[name] = value
    try:
        text = json.dumps(options, default=lambda _: None, skipkeys=True)
    # A list that contains itself, or too many others, which is refused when it is read.
    except (ValueError, RecursionError):
        return {}
    # In a fixed order: `arguments.keys() - _UNREPORTED` is a set.
    return dict(sorted(json.loads(text).items()))


def _reported_names(source: Source) -> list[str] | None:
    """Return the names of a collection without passwords; None if it has no names, or too many for
    a report.
    """
    names = named_paths(getattr(source, "address", source))  # an open index has an address
    return list(map(public_address, names)) if 0 < len(names) <= _MAX_NAMES else None


def method_options(settings: MethodSettings) -> JsonObject:
    """Return the options of a method: its name, and the settings that differ from the default of
    that name.
    """
    name = next((name for name, known in METHODS.items() if type(known) is type(settings)), None)
    if name is None:
        return {"method": None}
    options: JsonObject = {"method": name} | _changed(settings, METHODS[name])
    # A run has no option num_hashes, but the number of hashes may limit the bands.
    if options.pop("num_hashes", None) is not None:
        bands = method_of(settings).lookup.bands
        if bands is not None:
            options |= {"num_bands": bands.num_bands, "rows_per_band": bands.rows_per_band}
    words = options.get("tokens")
    if isinstance(words, Jieba):
        changed = _changed(words, Jieba())
        options |= {option: changed[name] for option, name in JIEBA.items() if name in changed}
        options["tokens"] = "jieba"
    return options


def _changed(settings: Any, default: Any) -> JsonObject:
    """Return the settings that differ from their default."""
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    return {name: value for name, value in values.items() if value != getattr(default, name)}


class Found(NamedTuple):
    """The inputs that were found, with their columns; the settings that compare them; warnings for
    the user.
    """

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

    command : the name of the function, as in engines.capabilities.COMMANDS. rule : decides which
    documents are removed. folder, engine : the output folder, and the engine. outputs : local files
    that the run replaces; no input may be one of them, or in the output folder; None is an output
    that is not written. progress : as in `dedup`. given : the options of the call, as the report
    has them.
    """

    inputs: Inputs
    method: DocumentSettings = field(default_factory=MinHash)
    selection: SelectionSettings = field(default_factory=SelectionSettings)
    settings: RunSettings = field(default_factory=RunSettings)
    rule: Rule = field(default_factory=Sieve)
    command: str = ""
    folder: FolderSettings = field(default_factory=FolderSettings)
    engine: EngineSettings = field(default_factory=EngineSettings)
    outputs: tuple[Output | None, ...] = ()
    progress: bool | Progress = False
    given: Options = field(default_factory=dict)

    def __post_init__(self) -> None:
        inputs = self.inputs
        # Here, before files are searched, which may take long.
        for columns in (inputs.text_column, inputs.id_column):
            if columns is not None:
                check_columns(columns)
        ReadingSettings(  # refuses other values
            roles=inputs.roles,
            text_unit=inputs.text_unit,
            in_format=inputs.in_format,
            quote=inputs.quote,
            max_document_bytes=inputs.max_document_bytes,
        )
        check_progress(self.progress)

    @property
    def threads(self) -> int:
        """The number of worker threads."""
        return count_threads(self.settings.threads)

    @property
    def options(self) -> dict[str, object]:
        """The options that an engine may refuse, by name: of the call, and their defaults."""
        return {
            **self.given,
            **asdict(self.selection),
            **asdict(self.settings),
            "count_by": self.inputs.count_by,
            "resume": self.folder.resume,
            "against": None if self.inputs.against is None else "a collection",
            **self.rule.options,
        }

    @property
    def counted(self) -> str | None:
        """The column by whose values removals are counted."""
        return self.inputs.count_by or self.selection.within

    def find(self) -> Found:
        """Find the inputs and choose their columns; the method compares the main text of web
        pages.
        """
        warnings: list[str] = []
        inputs = self.inputs._replace(
            vector_length=self.method.vector_length,
            only_code=getattr(self.method, "tokens", None) in CODE_TOKENS,
        )
        found = tasks_of(inputs, self.selection.keep, warnings, within=self.selection.within)
        tasks = [task._replace(max_unreadable=self.settings.max_unreadable) for task in found]
        # As soon as the files of patterns are known.
        self.refuse_replacing(tasks)
        return Found(tasks, for_pages(self.method, tasks), warnings)

    def refuse_replacing(self, tasks: Sequence[Task]) -> None:
        """Raise OutputError if an output would replace an input."""
        refuse_replacing(
            (self.folder.output, *self.outputs),
            [task.part for task in tasks if isinstance(task.part, InputFile)],
        )

    def rejecter(self, use: Reject, before: str = "nothing is written") -> Reject:
        """Return the function to call with each row that cannot be read; see
        documents.corpus.rejecter.
        """
        return rejecter(self.settings.on_error, use, before)


def run_of(command: str, source: Source, options: TextOptions, **others: Any) -> Run:
    """Return a run of a command over a source.

    options : how the source is read, and the output. others : fields of the run and of its inputs.
    """
    values = {**options, **others}
    return Run(
        Inputs(source, **_take(values, Inputs._fields)),
        settings=RunSettings(**_take(values, constraints_of(RunSettings))),
        folder=FolderSettings(**_take(values, constraints_of(FolderSettings))),
        engine=EngineSettings(**_take(values, constraints_of(EngineSettings))),
        command=command,
        **values,
    )


def selection_of(options: SelectionOptions) -> SelectionSettings:
    """Return the selection of a call, and take it out of its options."""
    values: JsonObject = options  # type: ignore[assignment]
    return SelectionSettings(**_take(values, constraints_of(SelectionSettings)))


def _take(values: JsonObject, names: Iterable[str]) -> JsonObject:
    """Take the values of some names out of all values."""
    return {name: values.pop(name) for name in names if name in values}
