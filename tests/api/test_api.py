"""The functions of the library: limits by name, progress, the mask of kept rows, results in one
line.
"""

from __future__ import annotations

import gzip
import inspect
import io
import re
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.errors import SettingError
from neardup.progress import compile_seconds, is_compiling
from neardup.report import progress_lines

TEXTS = [
    "one two three four five six seven eight nine ten",
    "One two three four five six seven eight nine ten!",
    "one two three four five six seven eight nine eleven",
    "an entirely different text about something else",
]
LABELLED = pa.table({"text": TEXTS, "cluster": ["1", "1", "1", "2"]})


# Limits beside the name of a method.
def test_a_threshold_is_that_of_the_named_method():
    by_name = neardup.dedup(TEXTS, threshold=0.5)
    by_settings = neardup.dedup(TEXTS, method=neardup.MinHash(threshold=0.5))
    assert by_name.removed.equals(by_settings.removed)
    assert by_name.removed["id"].to_pylist() == ["1", "2"]
    assert (
        neardup.dedup(TEXTS, method="content", threshold=0.5).report["settings"]["threshold"] == 0.5
    )


def test_a_distance_is_that_of_simhash():
    found = neardup.find_pairs(TEXTS, method="simhash", max_distance=16)
    assert found.pairs.equals(
        neardup.find_pairs(TEXTS, method=neardup.SimHash(max_distance=16)).pairs
    )
    assert (
        neardup.cluster(TEXTS, method="simhash", max_distance=0).report["settings"]["max_distance"]
        == 0
    )


def test_every_function_that_compares_takes_a_threshold():
    assert neardup.find_pairs(TEXTS, threshold=0.5).pairs.num_rows == 3
    assert neardup.cluster(TEXTS, threshold=0.5).clusters.num_rows == 1
    assert neardup.evaluate(LABELLED, threshold=0.5).at_threshold == (0.5, 3, 3, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"method": neardup.MinHash(), "threshold": 0.7},
            r"beside MinHash\(...\). Set it there: MinHash\(threshold=0.7\)",
        ),
        (
            {"method": neardup.SimHash(), "max_distance": 5},
            r"Set it there: SimHash\(max_distance=5\)",
        ),
        (
            {"max_distance": 5},
            "max_distance does not go with method='minhash': got max_distance=5. Its settings are",
        ),
        ({"threshold": 70}, "threshold must be a number above 0 and at most 1: got 70"),
        ({"method": "sim"}, "method must be one of minhash, simhash"),
    ],
    ids=str,
)
def test_a_limit_that_does_not_fit_the_method_is_refused(options, message):
    with pytest.raises(SettingError, match=message):
        neardup.dedup(TEXTS, **options)


# Progress.
class Log:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.documents = 0

    def begin(self, stage: str, total_documents: int | None) -> None:
        self.stages.append(stage)

    def advance(self, documents: int, num_bytes: int) -> None:
        self.documents += documents

    def end(self, stage: str, seconds: float) -> None:
        assert self.stages[-1] == stage


@pytest.mark.parametrize(
    "function",
    [
        neardup.dedup,
        neardup.find_pairs,
        neardup.cluster,
        neardup.sign,
        neardup.document_frequencies,
    ],
    ids=lambda function: function.__name__,
)
def test_progress_is_reported_stage_by_stage_to_an_object(function):
    log = Log()
    function(pa.table({"text": TEXTS}), progress=log)
    assert log.stages
    assert log.documents >= len(TEXTS)


def test_progress_true_writes_to_stderr(capsys):
    assert neardup.dedup(TEXTS, progress=True).removed.num_rows == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "Read: 4 docs, " in err


@pytest.fixture
def stage_lines(monkeypatch):
    """Lines whose clock the test sets; no thread prints them."""
    lines = progress_lines.StageLines(io.StringIO(), patience_s=5)
    clock = SimpleNamespace(now=time.monotonic() + 100, compiling=False, compile_seconds=1.0)
    monkeypatch.setattr(progress_lines.StageLines, "_watch", lambda *_: None)
    monkeypatch.setattr(progress_lines.time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(progress_lines, "is_compiling", lambda: clock.compiling)
    monkeypatch.setattr(progress_lines, "compile_seconds", lambda: clock.compile_seconds)
    return lines, clock


def test_a_long_stage_has_a_line_every_ten_seconds(stage_lines):
    lines, clock = stage_lines
    lines.begin("read", 4_000)
    for seconds in (4, 7, 4, 7):
        clock.now += seconds
        lines.advance(1_000, 11_000_000)
        lines.print_due()
    lines.end("read", 22.0)
    assert lines._file.getvalue().splitlines() == [
        "Read: 2,000 of 4,000 docs, 182/s, 2 MB/s, 11 s",
        "Read: 4,000 of 4,000 docs, 182/s, 2 MB/s, 22 s",
        "Read: 4,000 docs, 182/s, 2 MB/s, 22 s",
    ]


def test_compilation_is_announced_when_it_begins_and_every_ten_seconds(stage_lines):
    lines, clock = stage_lines
    lines._first = clock.now + 10  # the patience of the command line
    lines.begin("read", None)
    clock.compiling = True
    for _ in range(12):
        clock.now += 1
        clock.compile_seconds += 1
        lines.print_due()
    clock.compiling = False
    clock.now += 60
    lines.advance(10, 0)
    lines.print_due()
    assert lines._file.getvalue().splitlines() == [
        "Read: compiling for this processor, once, 1 s",
        "Read: compiling for this processor, once, 11 s",
        "Read: 10 docs, 0/s, 72 s",
    ]


def test_a_stage_that_counts_nothing_is_not_silent(monkeypatch):
    monkeypatch.setattr(progress_lines, "_TICK_S", 0.01)
    monkeypatch.setattr(progress_lines, "SECONDS_BETWEEN_LINES", 0.02)
    screen = io.StringIO()
    lines = progress_lines.StageLines(screen)
    lines.begin("sort", None)
    while screen.getvalue().count("Sort: running") < 2:
        time.sleep(0.01)
    lines.end("sort", 0.1)
    assert screen.getvalue().splitlines()[-1] == "Sort: done, 0.1 s"


def test_lines_say_how_long_kernels_were_compiled(monkeypatch):
    seconds = iter([1.0, 45.26, 50.0, 50.4])
    monkeypatch.setattr(progress_lines, "compile_seconds", lambda: next(seconds))
    screen = io.StringIO()
    lines = progress_lines.StageLines(screen)
    for stage in ("count", "sort"):
        lines.begin(stage, None)
        lines.end(stage, 0.1)
    assert screen.getvalue().splitlines() == [
        "Compiled for this processor, once: 44.3 s",
        "Count: done, 0.1 s",
        "Sort: done, 0.1 s",
    ]


def test_bars_are_drawn_while_another_thread_loads_the_kernels(monkeypatch):
    monkeypatch.setitem(
        sys.modules, "neardup.kernels.compiled", ModuleType("neardup.kernels.compiled")
    )
    assert (compile_seconds(), is_compiling()) == (0.0, False)


def test_an_object_without_the_methods_is_no_progress():
    with pytest.raises(
        SettingError,
        match="progress must be True, False or an object with the methods begin, advance",
    ):
        neardup.dedup(TEXTS, progress=print)


# The mask.
def test_the_mask_selects_the_kept_rows_of_the_source():
    result = neardup.dedup(TEXTS)
    assert result.mask.dtype == np.bool_
    assert result.mask.tolist() == [True, False, True, True]
    table = pa.table({"text": TEXTS})
    assert table.filter(pa.array(neardup.dedup(table).mask)).equals(neardup.dedup(table).kept)


def test_two_columns_of_one_name_are_kept():
    table = pa.table([TEXTS, [1, 2, 3, 4], [5, 6, 7, 8]], names=["text", "x", "x"])
    assert neardup.dedup(table).kept.equals(table.take([0, 2, 3]))


def test_the_mask_has_no_rows_of_the_earlier_collection():
    assert neardup.dedup(TEXTS, against=[TEXTS[3], "x"]).mask.tolist() == [True, False, True, False]


def test_a_rejected_row_is_not_kept():
    table = pa.table({"text": [TEXTS[0], "long " * 100, TEXTS[1], TEXTS[3], "long " * 100]})
    result = neardup.dedup(table, max_document_bytes=100)
    assert result.mask.tolist() == [True, False, False, True, False]
    assert (
        table.filter(pa.array(result.mask))["text"].to_pylist() == result.kept["text"].to_pylist()
    )


def test_the_mask_of_several_files_is_that_of_their_rows_in_order(tmp_path: Path):
    for name, texts in (("a.txt", TEXTS[:2]), ("b.txt", TEXTS[1:])):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts))
    result = neardup.dedup([tmp_path / "a.txt", tmp_path / "b.txt"], text_unit="line")
    assert result.mask.tolist() == [True, False, False, True, True]


def test_an_empty_line_of_json_is_no_document_and_not_kept(tmp_path: Path):
    path = tmp_path / "in.jsonl"
    path.write_text('{"text": "a b c"}\n\n{"text": "x y z"}\n\n{"text": "A, b, c!"}\n')
    result = neardup.dedup(path)
    assert result.mask.tolist() == [True, False, True, False, False]
    assert result.removed["row"].to_pylist() == [4]


def test_the_mask_of_nothing_is_empty():
    assert neardup.dedup([]).mask.tolist() == []


# Results.
def test_a_result_shows_itself_in_one_line():
    shown = [
        repr(neardup.dedup(TEXTS)),
        repr(neardup.find_pairs(TEXTS)),
        repr(neardup.cluster(TEXTS)),
        repr(neardup.evaluate(LABELLED)),
        repr(neardup.compare(*TEXTS[:2])),
    ]
    assert (
        shown[0]
        == "<Deduplication: 4 documents read, 3 kept, 1 removed (1 copy, 0 near-duplicates)>"
    )
    assert shown[1] == "<DuplicatePairs: 4 documents read, 1 duplicate pair>"
    assert all(re.fullmatch(r"<\w+: .{1,150}>", line) for line in shown)


def test_a_comparison_marks_its_texts_in_a_notebook():
    shown = neardup.compare(
        "one two <i> three", "one two three four", method=neardup.MinHash(ngram=1)
    )._repr_html_()
    assert "one two &lt;<del>i&gt; </del>three" in shown
    assert "one two three <ins>four</ins>" in shown


def test_tables_that_are_not_wanted_are_refused_with_their_file(tmp_path: Path):
    result = neardup.dedup(TEXTS, tables=False)
    assert result.mask.sum() == 3
    with pytest.raises(
        SettingError, match=r"removed is not in the result: got tables=False\. Use tables=True\."
    ):
        _ = result.removed
    with pytest.raises(SettingError, match="pairs is not"):
        _ = result.pairs
    pairs = neardup.find_pairs(TEXTS, output=tmp_path / "pairs.parquet", tables=False)
    with pytest.raises(
        SettingError, match=r"pairs is not in the result.* Read it from .*pairs\.parquet, or use"
    ):
        _ = pairs.pairs
    assert pq.read_table(pairs.output).num_rows == 1


FUNCTIONS = [name for name in neardup.__all__ if inspect.isfunction(getattr(neardup, name))]
VALUES = {
    "methods": ["minhash"],
    "documents": 1000,
    "items": TEXTS,
    "left": "a",
    "right": "b",
    "text": "a",
    "source": TEXTS,
    "name": "minhash",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_argument_of_a_wrong_type_is_an_error_of_neardup(name: str):
    function = getattr(neardup, name)
    parameters = inspect.signature(function).parameters
    named = {
        key: parameter
        for key, parameter in parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD
    }
    needed = {
        key: VALUES[key] for key, parameter in named.items() if parameter.default is parameter.empty
    }
    for key in named:
        with suppress(neardup.NeardupError):
            function(**{**needed, key: object()})


@pytest.mark.parametrize(
    "function", [neardup.cluster, neardup.find_pairs, neardup.evaluate, neardup.sweep, neardup.sign]
)
def test_options_of_reading_are_in_the_signature_of_each_function_with_the_defaults_of_dedup(
    function,
):
    of_dedup = inspect.signature(neardup.dedup).parameters
    spelled = inspect.signature(function).parameters
    names = {
        "text_column",
        "id_column",
        "text_unit",
        "in_format",
        "max_document_bytes",
        "threads",
        "on_error",
        "progress",
    }
    assert names <= spelled.keys()
    assert all(spelled[name] == of_dedup[name] for name in names)
    with pytest.raises(
        TypeError, match=rf"{function.__name__}\(\) got an unexpected keyword argument 'treads'"
    ):
        function(["a text"], treads=2)


def test_a_keyword_that_is_no_parameter_is_refused_with_advice():
    with pytest.raises(TypeError, match=r"'treshold'\. Did you mean 'threshold'"):
        neardup.dedup(["a text"], treshold=0.7)
    with pytest.raises(
        TypeError,
        match=r"'ngram'\. It is a setting of MinHash and SimHash: pass method=neardup\.MinHash\(",
    ):
        neardup.dedup(["a text"], ngram=3)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'xyzzy'\.$"):
        neardup.remove_passages(["a text"], xyzzy=3)


def test_pairs_are_written_and_returned(tmp_path: Path):
    result = neardup.find_pairs(TEXTS, output=tmp_path / "pairs.parquet")
    assert pq.read_table(tmp_path / "pairs.parquet").equals(result.pairs)
    with pytest.raises(neardup.errors.OutputError, match="already exists"):
        neardup.find_pairs(TEXTS, output=tmp_path / "pairs.parquet")


@pytest.mark.parametrize("output", [".", "./", "/", "..", Path()])
def test_the_current_folder_is_no_output(output):
    with pytest.raises(
        neardup.errors.OutputError, match=r"that can be replaced: got '.*'\. Name a new folder"
    ):
        neardup.dedup(TEXTS, output=output, overwrite=True)


def test_a_table_of_frequencies_lists_the_documents_that_it_does_not_count():
    table = neardup.document_frequencies([*TEXTS, "long " * 100], max_document_bytes=100)
    assert table.num_documents == 4
    assert [row.row for row in table.rejected] == [4]


# Comparing files.
def test_a_path_is_read_and_a_string_never_is(tmp_path: Path):
    (tmp_path / "a.txt").write_text("﻿" + TEXTS[0], encoding="utf-8")
    assert neardup.compare(tmp_path / "a.txt", TEXTS[0]).measures.same_text
    assert neardup.compare(str(tmp_path / "a.txt"), TEXTS[0]).similarity == 0.0


def test_files_that_cannot_be_compared_are_named(tmp_path: Path):
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    with pytest.raises(neardup.InputError, match=r"none\.txt cannot be read: No such file"):
        neardup.compare(tmp_path / "none.txt", "x")
    with pytest.raises(
        neardup.InputError, match=r"latin\.txt is not UTF-8: byte 3 is 0xe9\. Convert it first"
    ):
        neardup.compare("x", tmp_path / "latin.txt")
    with pytest.raises(
        neardup.InputError, match=r"A text must be a str, and a file a pathlib\.Path: got NoneType"
    ):
        neardup.compare(None, "x")


def test_a_compressed_file_to_compare_is_named_as_one(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"one two three"))
    with pytest.raises(neardup.InputError, match=r"a\.txt\.gz is compressed by gzip. Decompress"):
        neardup.compare(path, "one two three")


def test_methods_are_compared_by_name_or_as_settings():
    found = neardup.compare_methods(
        LABELLED, {"minhash": "minhash", "loose": neardup.MinHash(threshold=0.5)}
    )
    assert [result.at_threshold.found for result in found.values()] == [1, 3]
    with pytest.raises(SettingError, match="methods must be two or more different ones: got"):
        neardup.compare_methods(LABELLED, ["minhash"])
    with pytest.raises(SettingError, match="two or more different ones"):
        neardup.compare_methods(LABELLED, ["minhash", "minhash"])
    for unnamed in ([neardup.MinHash(), neardup.SimHash()], [["minhash"], ["simhash"]], "minhash"):
        with pytest.raises(SettingError, match="methods must be a list of names, or a dict of"):
            neardup.compare_methods(LABELLED, unnamed)


def test_each_compared_method_reads_a_source_that_can_be_read_once():
    methods = ["minhash", "simhash"]
    whole = neardup.compare_methods(LABELLED, methods)
    read = neardup.compare_methods(LABELLED.to_reader(), methods)
    assert [each.report["truth"] for each in read.values()] == [
        each.report["truth"] for each in whole.values()
    ]
    pairs = pa.table({"left_id": ["0"], "right_id": ["1"], "duplicate": [True]})
    texts = (text for text in LABELLED["text"].to_pylist())
    judged = neardup.compare_methods(texts, methods, pairs=pairs.to_reader())
    assert [each.at_threshold.positives for each in judged.values()] == [1, 1]


def test_names_of_files_as_texts_cause_a_warning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("some text")
    with pytest.warns(
        UserWarning, match=r"names of files. To compare the files, pass pathlib\.Path\('a\.txt'\)"
    ):
        neardup.compare("a.txt", "b.txt")


@pytest.mark.parametrize(("name", "meant"), [("SimHash", "simhash"), ("minhsh", "minhash")])
def test_a_misspelt_method_is_recognised(name, meant):
    with pytest.raises(SettingError, match=f"Did you mean '{meant}'"):
        neardup.dedup(["a"], method=name)


def test_an_index_of_fingerprints_names_what_takes_texts():
    with pytest.raises(neardup.InputError, match=r"Pass neardup\.sign\(text, method='simhash'\)"):
        neardup.HammingIndex(max_distance=3).add_if_new("a", "some text")


def test_a_plan_takes_numbers_of_numpy():
    assert str(neardup.plan(documents=np.int64(1000))) == str(neardup.plan(documents=1000))


def test_a_plan_and_a_table_of_frequencies_print_as_a_line():
    assert str(neardup.plan(documents=1e6)) == (
        "1,000,000 documents: 12 bands of 5 rows find 99.1% of the pairs at 0.8; 0.6 GB of memory, "
        "5.0 GB on disk"
    )
    assert repr(neardup.document_frequencies(["a b", "b c"])) == "IdfTable(2 documents, 3 features)"


def test_a_byte_that_is_not_utf8_is_named_after_a_byte_order_mark(tmp_path):
    path = tmp_path / "marked.txt"
    path.write_bytes(b"\xef\xbb\xbfabc\xff")
    with pytest.raises(neardup.InputError, match=r"is not UTF-8: byte 6 is 0xff"):
        neardup.compare(path, "abc")


class PathOfBytes:
    def __fspath__(self) -> bytes:
        return b"a.html"


@pytest.mark.parametrize(
    "path",
    [Path("a\0b"), Path("a\0b.docx"), Path("\ud800"), PathOfBytes()],
    ids=["null", "null before a suffix", "surrogate", "bytes"],
)
def test_a_path_that_no_file_has_is_refused_in_a_comparison(path):
    with pytest.raises(neardup.InputError, match=r"The path of a text must be a str or a pathlib"):
        neardup.compare(path, path)
