"""Every argument is checked where it enters: a wrong one is an error that says so, and nothing is
written.
"""

from __future__ import annotations

import inspect
import os
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup.errors import ColumnError, InputError, OutputError, SettingError, StoreError
from neardup.settings.run import SelectionSettings, split_copies

TEXTS = [
    "one two three four five six seven eight nine ten",
    "One two three four five six seven eight nine ten!",
    "an entirely different text about something else",
]
SIGNATURES = neardup.sign(TEXTS)
FINGERPRINTS = neardup.sign(TEXTS, method="simhash")


def index() -> neardup.Index:
    return neardup.Index.create("memory:")


@cache
def swept() -> neardup.Sweep:
    return neardup.sweep(TEXTS)


# Paths.
INPUTS = {
    "Index.open": neardup.Index.open,
    "Index.create": neardup.Index.create,
    "Index.from_run": lambda path: neardup.Index.from_run("memory:", path),
    "Index.from_run at": lambda path: neardup.Index.from_run(path, "out"),
    "Index.create with idf": lambda path: neardup.Index.create(
        "memory:", method="structure", idf=path
    ),
    "Index.backup": lambda path: index().backup(path),
    "Index.rebuild": lambda path: index().rebuild(path, method=neardup.MinHash()),
    "HammingIndex.open": neardup.HammingIndex.open,
    "LSHIndex.open": neardup.LSHIndex.open,
    "Signatures.open": neardup.Signatures.open,
    "Fingerprints.open": neardup.Fingerprints.open,
    "IdfTable.open": neardup.IdfTable.open,
}
OUTPUTS = {
    "HammingIndex.save": lambda path: neardup.HammingIndex().save(path),
    "LSHIndex.save": lambda path: neardup.LSHIndex().save(path),
    "Signatures.save": SIGNATURES.save,
    "Fingerprints.save": FINGERPRINTS.save,
    "IdfTable.save": lambda path: neardup.document_frequencies(TEXTS).save(path),
    "Sweep.ask": lambda path: swept().ask(lambda pair: True, answers=path),
    "Sweep.write_questions": lambda path: swept().write_questions(path),
    "Sweep.write_questions with answers": lambda path: swept().write_questions(
        "q.html", answers=path
    ),
    "Sweep.plot": lambda path: swept().plot(path),
    "Suggestion.write": lambda path: swept().suggestion.write(path),
    "Index.export": lambda path: index().export(path),
    "Index.add_files": lambda path: index().add_files(TEXTS, output=path),
    "Index.add_files with answers": lambda path: index().add_files(TEXTS, answers=path),
    "Index.query_files": lambda path: index().query_files(TEXTS, output=path),
    "dedup": lambda path: neardup.dedup(TEXTS, output=path),
    "sign": lambda path: neardup.sign(TEXTS, output=path),
    "find_pairs": lambda path: neardup.find_pairs(TEXTS, output=path),
    "plan": lambda path: neardup.plan(documents=1000, plot=path),
}


@pytest.mark.parametrize("path", [5, b"x.parquet", "", "\ud800", "a\0b.svg", ["x"]], ids=ascii)
@pytest.mark.parametrize("name", INPUTS)
def test_an_input_that_is_no_path_is_refused(name, path):
    with pytest.raises(
        InputError, match=r"must be a str or a pathlib\.Path: got .*Name a file or a folder\."
    ):
        INPUTS[name](path)


@pytest.mark.parametrize("path", [5, b"x.parquet", "", "\ud800", "a\0b.svg", ["x"]], ids=ascii)
@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_that_is_no_path_is_refused_and_nothing_is_written(
    name, path, tmp_path: Path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        OutputError, match=r"must be a str or a pathlib\.Path: got .*Name a file or a folder\."
    ):
        OUTPUTS[name](path)
    assert not list(tmp_path.iterdir())


LONG = "x" * 300
FILES = {
    "Signatures.save": SIGNATURES.save,
    "HammingIndex.save": lambda path: neardup.HammingIndex().save(path),
    "Index.create": neardup.Index.create,
    "Index.rebuild": lambda path: index().rebuild(path, method=neardup.MinHash()),
    "Index.add_files": lambda path: index().add_files(TEXTS, output=path),
    "dedup": lambda path: neardup.dedup(TEXTS, output=path),
}


@pytest.mark.parametrize("name", FILES)
def test_a_name_that_is_too_long_for_a_file_is_an_error_with_the_reason(
    name, tmp_path: Path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((OutputError, StoreError), match="File name too long"):
        FILES[name](LONG)


# Flags.
NEEDED = {"methods": ["minhash", "simhash"], "source": TEXTS, "items": TEXTS}
FLAGS = {
    f"{name}({parameter.name})": (name, parameter.name)
    for name in neardup.__all__
    if inspect.isfunction(getattr(neardup, name))
    for parameter in inspect.signature(getattr(neardup, name)).parameters.values()
    if parameter.annotation == "bool"
}
FLAGS_OF_METHODS = {
    "Index.open": lambda flag: neardup.Index.open("x.index", read_only=flag),
    "Index.add_files": lambda flag: index().add_files(TEXTS, if_new=flag),
    "Index.add_batches": lambda flag: list(index().add_batches(TEXTS, if_new=flag)),
    "Index.export": lambda flag: index().export("x.jsonl", overwrite=flag),
    "HammingIndex.save": lambda flag: neardup.HammingIndex().save("x.parquet", overwrite=flag),
    "Signatures.save": lambda flag: SIGNATURES.save("x.parquet", overwrite=flag),
    "Signatures.to_table": lambda flag: SIGNATURES.to_table(with_hex=flag),
    "Suggestion.write": lambda flag: swept().suggestion.write("x.toml", overwrite=flag),
}


@pytest.mark.parametrize("flag", ["x", 1, None], ids=repr)
@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_of_a_function_is_true_or_false_also_where_it_changes_nothing(name, flag):
    function, parameter = FLAGS[name]
    needed = {
        key: NEEDED[key]
        for key in inspect.signature(getattr(neardup, function)).parameters
        if key in NEEDED
    }
    with pytest.raises(
        SettingError, match=rf"{parameter} must be True or False: got {flag!r}\. (Change|Pass) "
    ):
        getattr(neardup, function)(**needed, **{parameter: flag})


@pytest.mark.parametrize("flag", ["x", 1, None], ids=repr)
@pytest.mark.parametrize("name", FLAGS_OF_METHODS)
def test_a_flag_of_a_method_is_true_or_false(name, flag, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingError, match="must be True or False: got"):
        FLAGS_OF_METHODS[name](flag)
    assert not list(tmp_path.iterdir())


def test_a_flag_may_be_one_of_numpy():
    assert neardup.dedup(TEXTS, tables=np.False_).mask.sum() == 2


# Options of reading, which texts in memory do not need.
READERS = {
    "dedup": neardup.dedup,
    "sign": neardup.sign,
    "sign a column": lambda texts, **options: neardup.sign(pa.array(texts), **options),
    "sign sets": lambda texts, **options: neardup.sign([text.split() for text in texts], **options),
    "find_pairs": neardup.find_pairs,
    "document_frequencies": neardup.document_frequencies,
    "sweep": neardup.sweep,
    "Index.add_files": lambda texts, **options: index().add_files(texts, **options),
}


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        (
            "max_document_bytes",
            -1,
            "max_document_bytes must be a whole number of 1 or more: got -1",
        ),
        (
            "max_document_bytes",
            "x",
            "max_document_bytes must be a whole number of 1 or more: got 'x'",
        ),
        ("progress", "x", "progress must be True, False or an object"),
        (
            "in_format",
            "parket",
            "in_format must be one of .* got 'parket'. Did you mean 'parquet'?",
        ),
        ("in_format", ["csv"], "in_format must be one of"),
        ("text_unit", "zz", "text_unit must be one of 'auto', 'line', 'file': got 'zz'"),
        ("text_unit", None, "text_unit must be one of"),
        ("text_column", 5, "name of a column must be a string: got 5"),
        ("text_column", ["text", None], "name of a column must be a string: got None"),
        ("text_column", np.array(["a", "b"]), "name of a column must be a string: got array"),
    ],
)
@pytest.mark.parametrize("name", READERS)
def test_an_option_of_reading_is_checked_also_for_texts_in_memory(name, option, value, message):
    with pytest.raises((SettingError, ColumnError), match=message):
        READERS[name](TEXTS, **{option: value})


@pytest.mark.parametrize("columns", [5, ["a", 5], np.array(["a", "b"])], ids=repr)
@pytest.mark.parametrize(
    "read",
    [
        lambda columns: neardup.dedup(TEXTS, id_column=columns),
        lambda columns: neardup.find_contamination(TEXTS, TEXTS, item_columns=columns),
        lambda columns: index().add_many_if_new(TEXTS, payload_column=columns),
        lambda columns: index().add_files(TEXTS, payload_column=columns),
        lambda columns: index().answer_lines([[b"{}"]], text_column=columns),
        lambda columns: index().answer_lines([[b"{}"]], payload_column=columns),
    ],
)
def test_the_name_of_a_column_is_a_string(read, columns):
    with pytest.raises(
        ColumnError,
        match=r"The name of a column must be a string: got .*\. Name a column, or several",
    ):
        read(columns)


@pytest.mark.parametrize("limit", [0, "x", 1.5], ids=repr)
def test_the_limit_of_lines_is_a_number(limit):
    with pytest.raises(
        SettingError, match="max_document_bytes must be a whole number of 1 or more"
    ):
        index().answer_lines([[b"{}"]], max_document_bytes=limit)


@pytest.mark.parametrize(
    "texts", [["ab", "abc", "abcd"], pa.array(["ab", None, "abcd"])], ids=["list", "column"]
)
def test_a_text_above_the_limit_is_not_signed(texts):
    assert len(neardup.sign(texts, max_document_bytes=4)) == 3
    with pytest.raises(
        InputError, match="The text in row 2 has 4 bytes, more than max_document_bytes=3"
    ):
        neardup.sign(texts, max_document_bytes=3)


def test_the_limit_of_a_text_counts_bytes_of_utf8():
    with pytest.raises(InputError, match="row 0 has 6 bytes"):
        neardup.sign(["漢字"], max_document_bytes=5)


# Objects of a type, and numbers.
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: index().merge(5), InputError, "other must be an Index: got int 5"),
        (lambda: index().merge(None), InputError, "other must be an Index"),
        (
            lambda: neardup.HammingIndex().merge(5),
            InputError,
            "can only be merged with one of the same type",
        ),
        (lambda: neardup.HammingIndex(scheme=5), InputError, "scheme must be a mapping"),
        (lambda: neardup.LSHIndex(scheme="x"), InputError, "scheme must be a mapping"),
        (
            lambda: neardup.HammingIndex().add_many(["x"], None),
            InputError,
            "fingerprints must be Fingerprints, integ",
        ),
        (
            lambda: neardup.HammingIndex().query_many(5),
            InputError,
            "fingerprints must be Fingerprints, integers",
        ),
        (lambda: SIGNATURES.similarity(5), InputError, "other must be Signatures: got int 5"),
        (lambda: SIGNATURES.merge(None), InputError, "other must be Signatures"),
        (lambda: SIGNATURES.pack(4).similarity([1]), InputError, "other must be Signatures"),
        (lambda: FINGERPRINTS.similarity(5), InputError, "other must be Fingerprints"),
        (lambda: FINGERPRINTS.distance("x"), InputError, "other must be Fingerprints"),
        (
            lambda: neardup.document_frequencies(TEXTS, method=neardup.MinHash),
            SettingError,
            "Use MinHash\\(...\\)",
        ),
        (
            lambda: neardup.Signatures.from_table(5),
            InputError,
            "table must be an Arrow table: got int 5",
        ),
        (lambda: neardup.Fingerprints.from_table([]), InputError, "table must be an Arrow table"),
        (
            lambda: SIGNATURES.save("x.parquet", ids=5),
            InputError,
            "ids must be a list or an Arrow column: got int 5",
        ),
        (lambda: neardup.explain("a", idf=5), InputError, "idf must be an IdfTable"),
        (lambda: neardup.lsh.keywords("a", 5), InputError, "idf must be an IdfTable"),
        (
            lambda: neardup.IdfTable.from_counts({"a": 1}, num_documents=2, method=5),
            InputError,
            "method must be",
        ),
        (lambda: neardup.method(noise=np.array([1, 2])), SettingError, "noise must be"),
        (
            lambda: SIGNATURES.to_table(["a", 5, "c"]),
            InputError,
            "ids must be all strings, or all integers",
        ),
        (
            lambda: list(index().answer_lines(b"x")),
            InputError,
            "A group of lines must be a list of bytes: got int",
        ),
        (
            lambda: list(index().answer_lines(["x"])),
            InputError,
            "A line must be bytes: got str 'x'",
        ),
        (lambda: index().answer_lines(5), InputError, "groups must be"),
        (lambda: neardup.document_frequencies(TEXTS, method=5), SettingError, "got 5"),
        (lambda: neardup.find_pairs(TEXTS, method={}), SettingError, "got {}"),
        (lambda: neardup.compare("a", "b", method=""), SettingError, "got ''"),
        (lambda: neardup.lsh.keywords("a", method=0), SettingError, "got 0"),
        (
            lambda: neardup.plan(documents=10, engine="index", storage=""),
            SettingError,
            "storage must be",
        ),
        (lambda: swept().ask(None), InputError, "answer must be a function"),
        (lambda: swept().ask("yes"), InputError, "answer must be a function"),
        (
            lambda: neardup.explain([5], method="minhash"),
            InputError,
            "A feature must be a string: got int 5",
        ),
        (
            lambda: neardup.explain([("a", 1.0)], method="minhash"),
            InputError,
            "Weighted features go with SimHash",
        ),
        (
            lambda: neardup.explain(["a", None], method="minhash"),
            InputError,
            "A feature must be a string",
        ),
        (lambda: neardup.explain([5]), InputError, "pairs of a string and a finite number"),
        (lambda: neardup.explain(["\ud800"], method="minhash"), InputError, "lone surrogates"),
        (lambda: neardup.explain(["\ud800"]), InputError, "lone surrogates"),
        (lambda: neardup.explain([("\ud800", 1.0)]), InputError, "lone surrogates"),
        (lambda: neardup.explain("\ud800", method="minhash"), InputError, "lone surrogates"),
        (lambda: neardup.explain("\ud800"), InputError, "lone surrogates"),
    ],
)
def test_an_object_of_another_type_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("number", [np.float32(0.5), np.float64(0.5), np.int64(0)], ids=repr)
def test_numbers_of_numpy_are_numbers(number):
    assert swept().ask(lambda pair: True, min_precision=number).reason


@pytest.mark.parametrize("unit", ["ns", "s"])
def test_a_duration_of_numpy_is_no_number(unit):
    duration = np.timedelta64(5, unit)
    with pytest.raises(SettingError, match="An age is a timedelta"):
        index().expire(older_than=duration)
    with pytest.raises(SettingError, match="limit must be a whole number"):
        index().query("a", limit=duration)
    with pytest.raises(SettingError, match="ngram must be a whole number"):
        neardup.MinHash(ngram=duration)


class Unprintable:
    def __repr__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    "value", ["a long text " * 1000, np.zeros((9, 9)), Unprintable()], ids=type
)
@pytest.mark.parametrize(
    "call",
    [
        lambda value: neardup.MinHash(tokens=value),
        lambda value: neardup.method(value),
        lambda value: neardup.method("minhash", shingles=value),
        lambda value: index().query("a", limit=value),
        lambda value: index().expire(older_than=value),
    ],
)
def test_a_value_in_an_error_is_on_one_line_and_short(call, value):
    with pytest.raises(SettingError) as refused:
        call(value)
    message = str(refused.value)
    assert "\n" not in message
    assert len(message) < 1000


def test_columns_in_lists_nested_deeply_are_refused():
    columns = []
    for _ in range(10_000):
        columns = [columns]
    with pytest.raises(ColumnError, match="The name of a column must be a string"):
        neardup.dedup(TEXTS, text_column=columns)


def test_a_path_may_have_bytes(tmp_path: Path):
    (tmp_path / "a.txt").write_text("\n".join(TEXTS))
    [entry] = os.scandir(os.fsencode(tmp_path))
    for source in (entry, [entry]):
        assert neardup.dedup(source).report["counts"]["read"] == len(TEXTS)


def test_a_column_to_keep_by_may_have_a_line_end_in_its_name():
    keep = SelectionSettings(keep="max:a\nb,longest:3").keep
    assert split_copies(keep) == ("max:a\nb,longest", 3)


def test_an_age_may_be_a_number_of_numpy():
    assert index().expire(older_than=np.float32(5)) == 0
