"""Files of fingerprints: what is written is read again, and pairs among them are those among their
texts.
"""

from __future__ import annotations

import itertools
import json
import pickle
import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup
from neardup import Fingerprints, Signatures
from neardup.fingerprints.fingerprints import is_fingerprint_file
from neardup.fingerprints.gathered import FingerprintFile
from neardup.fingerprints.sketches import SCHEME_KEY
from neardup.sketches import row_store
from reference import hamming
from reference.signed import fingerprint_of

SHINGLES = neardup.SimHash(tokens="tags", ngram=3, weights="one")

BITS = (32, 64, 128, 256)
SHORT_AND_ALIKE = [
    "a b c d e f",
    "a b c d e g",
    "a b c d e f",
    "",
    "x y z u v w",
    None,
    "a b c d e f g",
]


def words_of(values: list[int], bits: int) -> np.ndarray:
    return np.array(hamming.to_words(values, bits), np.uint64).reshape(
        len(values), (bits + 63) // 64
    )


def integers(fingerprints: np.ndarray) -> list[int]:
    return [
        sum(word << 64 * place for place, word in enumerate(row)) for row in fingerprints.tolist()
    ]


def fingerprints_of(
    values: list[int | None], scheme: dict, ids: list | None = None
) -> Fingerprints:
    """Return fingerprints given as integers; a None is a document without features."""
    words = words_of([value or 0 for value in values], scheme["bits"])
    names = (
        pa.array([str(i) for i in range(len(values))], pa.string())
        if ids is None
        else pa.array(ids)
    )
    return Fingerprints(words, scheme, names, np.array([value is None for value in values], bool))


def fingerprint_table(values: list[int | None], scheme: dict, ids: list | None = None) -> pa.Table:
    """Return a table as `neardup sign` writes it."""
    return fingerprints_of(values, scheme, ids).to_table()


SCHEME = {"name": "simhash", "version": 1, "bits": 64}

VALUES = st.sampled_from(BITS).flatmap(
    lambda bits: st.tuples(
        st.just(bits), st.lists(st.one_of(st.none(), st.integers(0, 2**bits - 1)), max_size=20)
    )
)


# Bytes, digits, columns.
@given(VALUES)
def test_the_bytes_read_as_the_digits_of_the_integer(case):
    bits, values = case
    table = fingerprints_of(values, {**SCHEME, "bits": bits}).to_table(with_hex=True)
    assert table.schema.field("fingerprint").type == pa.binary(bits // 8)
    table.validate(full=True)
    expected = [None if value is None else value.to_bytes(bits // 8, "big") for value in values]
    assert table["fingerprint"].to_pylist() == expected
    assert table["hex"].to_pylist() == [
        None if value is None else f"{value:0{bits // 4}x}" for value in values
    ]
    assert fingerprints_of(values, {**SCHEME, "bits": bits}).to_integers() == [
        value or 0 for value in values
    ]


@given(VALUES, st.integers(0, 5), st.integers(0, 5))
def test_slices_of_a_table_give_their_own_fingerprints(case, start, cut):
    bits, values = case
    numbers = [value or 0 for value in values]
    stop = max(start, len(values) - cut)
    part = fingerprint_table(numbers, {**SCHEME, "bits": bits})[start:stop]
    assert Fingerprints.from_table(part).to_integers() == numbers[start:stop]


@given(VALUES, VALUES)
def test_distances_are_those_of_the_integers_row_by_row_or_one_with_many(case, other):
    bits, values = case
    scheme = {**SCHEME, "bits": bits}
    fingerprints = fingerprints_of([0, *values], scheme)
    numbers = fingerprints.to_integers()
    for row, value in enumerate(numbers):
        expected = [(value ^ number).bit_count() for number in numbers]
        assert fingerprints[row].distance(fingerprints).tolist() == expected
        assert fingerprints.distance(fingerprints[row]).tolist() == expected
        empty = fingerprints.empty | fingerprints.empty[row]
        shares = [
            0.0 if none else 1 - distance / bits
            for none, distance in zip(empty, expected, strict=True)
        ]
        assert fingerprints[row].similarity(fingerprints).tolist() == shares
    if other[0] != bits:
        with pytest.raises(
            neardup.errors.SchemeError,
            match=f"the first has bits={bits}; the second has bits={other[0]}",
        ):
            fingerprints.similarity(fingerprints_of([0], {**SCHEME, "bits": other[0]}))


@given(VALUES, st.integers(1, 4))
@settings(max_examples=25)
def test_a_file_holds_what_was_written_to_it(tmp_path, case, rows_per_group):
    bits, values = case
    path = tmp_path / "fp.parquet"
    table = fingerprint_table(values, {**SCHEME, "bits": bits})
    pq.write_table(table, path, row_group_size=rows_per_group)
    assert is_fingerprint_file(path)
    found = Fingerprints.open(path)
    assert found.scheme == {**SCHEME, "bits": bits}
    assert found.values.dtype == np.uint64
    assert found.values.flags.c_contiguous
    assert found.to_integers() == [value or 0 for value in values]
    assert found.ids.to_pylist() == [str(i) for i in range(len(values))]
    assert found.empty.tolist() == [value is None for value in values]
    assert Fingerprints.from_table(table[1:]).to_integers() == [value or 0 for value in values[1:]]


def test_a_column_of_uint64_without_metadata_has_an_unknown_scheme():
    table = pa.table({"fingerprint": pa.array([2**64 - 1, None, 5], pa.uint64())})
    found = Fingerprints.from_table(table)
    assert found.to_integers() == [2**64 - 1, 0, 5]
    assert found.ids.to_pylist() == ["0", "1", "2"]
    assert (found.scheme, found.empty.tolist()) == (
        {"name": "unknown", "bits": 64},
        [False, True, False],
    )


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        (pa.array([7, 9], pa.int32()), pa.int64()),
        (pa.array(["b", "a"]).dictionary_encode(), pa.large_string()),
        (pa.array(["b", "a"]), pa.large_string()),
        (pa.array([7, 9], pa.uint64()), pa.int64()),
    ],
)
def test_ids_are_strings_or_integers(ids, kind):
    column = pa.array([1, 2], pa.uint64())
    found = Fingerprints.from_table(pa.table({"id": ids, "fingerprint": column}))
    assert found.ids.type == kind
    assert found.ids.to_pylist() == ids.to_pylist()


@pytest.mark.parametrize("ids", [[[1], [2]], [{"a": 1}] * 2])
def test_ids_that_are_no_text_are_refused(tmp_path, ids):
    table = pa.table({"id": ids, "fingerprint": pa.array([1, 1], pa.uint64())})
    pq.write_table(table, tmp_path / "fp.parquet")
    for read in (
        lambda: Fingerprints.from_table(table),
        lambda: neardup.find_pairs(tmp_path / "fp.parquet", method="simhash"),
    ):
        with pytest.raises(
            neardup.errors.ColumnError, match="has ids that are neither text nor int64"
        ):
            read()


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ("ab", "a list or an Arrow column: got str 'ab'"),
        ([b"\xff", b"b"], "neither text nor int64"),
        ([["a"], ["b"]], "neither text nor int64"),
        (["a", None], "has a null in the column 'id'"),
        ([2**64, 1], "too large"),
        (pa.array([2**64 - 1], pa.uint64()).take(pa.array([0, 0])), "neither text nor int64"),
    ],
)
def test_values_that_are_no_ids_are_not_written(tmp_path, ids, said):
    signed = Fingerprints(words_of([1, 2], 64), SCHEME)
    with pytest.raises(neardup.InputError, match=said):
        signed.save(tmp_path / "fp.parquet", ids)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("rows", [(1, 0), [1, 0], range(1, -1, -1), np.array([1, 0])])
def test_integers_of_any_sequence_select_rows(rows):
    signed = Fingerprints(words_of([1, 2], 64), SCHEME)
    assert signed[rows].to_integers() == [2, 1]
    assert len(signed[rows[:0]]) == 0


def test_a_field_of_another_column_is_no_id(tmp_path):
    table = pa.table({"meta": [{"id": "x"}] * 3, "fingerprint": pa.array([1, 2, 1], pa.uint64())})
    pq.write_table(table, tmp_path / "fp.parquet")
    found = neardup.find_pairs(tmp_path / "fp.parquet", method=neardup.SimHash(max_distance=0))
    assert distances(found.pairs) == [("0", "2", 0)]


def test_two_columns_of_fingerprints_are_refused(tmp_path):
    column = pa.array([1, 2], pa.uint64())
    table = pa.table([column, column], names=["fingerprint", "fingerprint"])
    with pytest.raises(neardup.errors.ColumnError, match="has no column 'fingerprint'"):
        Fingerprints.from_table(table)


def test_ids_of_any_number_of_rows_have_room_for_more_than_2_gib(tmp_path: Path):
    ids = pa.chunked_array([["a", "b"], ["c"]])  # of type string, whose offsets end at 2 GiB
    table = pa.table({"id": ids, "text": ["one two three", "four five", "six seven"]})
    path = tmp_path / "fp.parquet"
    signed = neardup.sign(table, method="simhash", text_column="text", id_column="id")
    Fingerprints(signed.values, signed.scheme).save(path, ids)
    opened = Fingerprints.open(path)
    chosen = opened[[2, 0]]
    numbered = Fingerprints(signed.values, signed.scheme)
    for found in (
        signed,
        opened,
        chosen,
        numbered,
        Fingerprints.from_table(table_with(path, "id")),
    ):
        assert found.ids.type == pa.large_string()
    assert opened.ids.to_pylist() == ["a", "b", "c"]
    assert FingerprintFile(str(path)).ids(np.array([1, 2])).type == pa.large_string()


def table_with(path: Path, *columns: str) -> pa.Table:
    """Return a file of fingerprints with columns as strings of 32-bit offsets."""
    table = pq.read_table(path)
    for name in columns:
        table = table.set_column(
            table.schema.get_field_index(name), name, table[name].cast(pa.string())
        )
    return table


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            {"id": ["a"]},
            (
                r"fp\.parquet has no column 'fingerprint' of 4, 8, 16, 32 bytes .* it has id "
                r"\(string\)"
            ),
        ),
        ({"fingerprint": ["ab"]}, r"it has fingerprint \(string\)\. Create one with neardup.sign"),
        (
            {"fingerprint": pa.array([b"abc"], pa.binary(3))},
            r"fingerprint \(fixed_size_binary\[3\]\)",
        ),
        ({"fingerprint": pa.array([1], pa.int64())}, r"fingerprint \(int64\)"),
        (
            {"id": pa.array([None], pa.string()), "fingerprint": pa.array([1], pa.uint64())},
            "a null in the column 'id'",
        ),
    ],
)
def test_a_file_without_such_a_column_is_refused_with_what_it_has(tmp_path, columns, said):
    pq.write_table(pa.table(columns), tmp_path / "fp.parquet")
    with pytest.raises(neardup.errors.ColumnError, match=said):
        Fingerprints.open(tmp_path / "fp.parquet")


def test_the_id_of_a_document_without_features_may_be_null():
    table = pa.table({"id": pa.array([None, "b"]), "fingerprint": pa.array([None, 1], pa.uint64())})
    assert Fingerprints.from_table(table).ids.to_pylist() == [None, "b"]
    assert neardup.find_pairs(table, method="simhash").report["counts"]["fingerprints"] == 1


def test_a_damaged_file_is_refused_by_name(tmp_path):
    path = tmp_path / "fp.parquet"
    pq.write_table(fingerprint_table(list(range(2000)), SCHEME), path, compression="zstd")
    data = path.read_bytes()
    path.write_bytes(data[:100] + bytes(200) + data[300:])  # its schema can still be read
    assert is_fingerprint_file(path)
    with pytest.raises(neardup.InputError, match=r"fp\.parquet cannot be read as Parquet"):
        neardup.find_pairs(path, method=neardup.SimHash())
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(neardup.InputError, match=r"fp\.parquet cannot be read as Parquet"):
        Fingerprints.open(path)


def saved(kind: type, path: Path) -> Any:
    """Save an index of 40 rows in two row groups, and return its contents."""
    chance = np.random.default_rng(3)
    scheme = {"name": "minhash", "seed": 1, "num_hashes": 8}
    bands = neardup.MinHash(num_bands=2, rows_per_band=2)
    index = {
        neardup.HammingIndex: lambda: kind(scheme={"name": "simhash", "bits": 64, "version": 1}),
        neardup.LSHIndex: lambda: kind(bands),
    }.get(kind, kind)()
    for first in (0, 20):
        ids = [f"é{first + i}" for i in range(20)]
        values = chance.integers(0, 2**32, (20, 8), np.uint32)
        if kind is neardup.HammingIndex:
            index.add_many(ids, values[:, 0].astype(np.uint64) << np.uint64(7))
        else:
            index.add_many(ids, Signatures(values, scheme))
    index.save(path)
    return contents(kind, path)


def contents(kind: type, path: Path) -> Any:
    index = kind.open(path)
    rows = [
        [column if column is None else column.tolist() for column in columns]
        for columns in index._store.batches()
    ]
    return rows, index.scheme, index._settings()


KINDS = (neardup.LSHIndex, neardup.HammingIndex)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_bytes", [120, pytest.param(None, marks=pytest.mark.slow)])
def test_a_byte_of_an_index_that_changed_is_noticed_or_changes_nothing(
    kind: type, num_bytes: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_store, "_BATCH_ROWS", 20)
    path = tmp_path / "index.parquet"
    expected = saved(kind, path)
    data = path.read_bytes()
    chance = random.Random(5)
    for position in (
        range(len(data)) if num_bytes is None else chance.sample(range(len(data)), num_bytes)
    ):
        damaged = bytearray(data)
        damaged[position] ^= chance.randrange(1, 256)
        path.write_bytes(damaged)
        with suppress(neardup.InputError):
            assert contents(kind, path) == expected, position


def test_damage_to_a_saved_index_names_the_file_and_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "index.parquet"
    saved(neardup.LSHIndex, path)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"num_hashes", b"num_hasher"))
    with pytest.raises(
        neardup.InputError, match=r"index\.parquet cannot be read .* damaged\. Restore .* backup"
    ):
        neardup.LSHIndex.open(path)


@pytest.mark.parametrize(
    "written", [b"{half", b"\xff", b"[]", b"{}", b'{"name": "simhash", "bits": 128}']
)
def test_a_scheme_of_other_fingerprints_is_refused_by_name(written):
    table = fingerprint_table([1], SCHEME).replace_schema_metadata({SCHEME_KEY: written})
    with pytest.raises(
        neardup.InputError, match=r"metadata of source is not that of fingerprints of 64 bits: got "
    ):
        neardup.find_pairs(table, method=neardup.SimHash())


# Made from texts.
METHODS = {
    "native": neardup.SimHash(),
    "32 bits": neardup.SimHash(bits=32, ngram=2),
    "256 bits of shingles": neardup.SimHash(bits=256, ngram=3),
    "tfidf": neardup.SimHash(weights="tfidf", bits=128),
    "mfonda": neardup.SimHash(scheme="mfonda"),
}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_each_fingerprint_is_that_of_its_text_alone(method):
    found = neardup.sign(SHORT_AND_ALIKE, method=method)
    alone = method
    if method.weights == "tfidf":
        alone = replace(method, idf=neardup.document_frequencies(SHORT_AND_ALIKE, method=method))
    for text, value, empty in zip(
        SHORT_AND_ALIKE, found.to_integers(), found.empty.tolist(), strict=True
    ):
        assert empty is not bool(text)
        assert value == (fingerprint_of(text, method=alone) if text else 0)
    assert found.ids.to_pylist() == [str(i) for i in range(len(SHORT_AND_ALIKE))]


FORMS = {
    "tokens": [["a", "b", "b"], [], None, ["c", ""]],
    "weighted": [{"a": 2.5, "b": -1.0}, {}, None, {"c": 1.0}],
}


@pytest.mark.parametrize(
    "method", [METHODS[name] for name in ("native", "32 bits", "256 bits of shingles", "mfonda")]
)
@pytest.mark.parametrize("form", FORMS)
def test_tokens_have_the_fingerprints_that_simhash_gives_them(method, form):
    rows = FORMS[form]
    found = neardup.sign(rows, method=method)
    for row, value, empty in zip(rows, found.to_integers(), found.empty.tolist(), strict=True):
        features = (
            list(row.items()) if isinstance(row, dict) else [token for token in row or [] if token]
        )
        assert empty is not bool(features)
        assert value == (fingerprint_of(features, method=method) if features else 0)
    assert found.scheme["features"] == {"tokens": "given", "version": 2}
    assert found.scheme != neardup.sign(["a text"], method=method).scheme
    if form == "weighted":
        with pytest.raises(neardup.InputError, match="finite number"):
            neardup.sign([{"a": float("nan")}], method=method)


@pytest.mark.parametrize("method", ["minhash", "simhash"])
def test_texts_paths_and_tables_are_signed_alike(tmp_path, method):
    table = pa.table({"id": [f"d{i}" for i in range(7)], "text": SHORT_AND_ALIKE})
    pq.write_table(table[:3], tmp_path / "0.parquet")
    with (tmp_path / "1.jsonl").open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in table[3:].to_pylist())
    expected = neardup.sign(SHORT_AND_ALIKE, method=method)
    paths = [tmp_path / "0.parquet", tmp_path / "1.jsonl"]
    for source in (paths, [str(path) for path in paths], table, tmp_path):
        found = neardup.sign(source, method=method)
        assert found.values.tolist() == expected.values.tolist()
        assert found.empty.tolist() == expected.empty.tolist()
        assert found.ids.to_pylist() == table["id"].to_pylist()
        assert found.scheme == expected.scheme
    for column in (table["text"], table["text"].combine_chunks(), iter(SHORT_AND_ALIKE)):
        found = neardup.sign(column, method=method)
        assert found.values.tolist() == expected.values.tolist()
        assert found.ids.to_pylist() == [str(i) for i in range(7)]


@pytest.mark.parametrize("method", ["minhash", "simhash"])
def test_an_output_file_holds_what_is_returned_otherwise(tmp_path, method):
    expected = neardup.sign(SHORT_AND_ALIKE, method=method)
    path = tmp_path / "signed.parquet"
    found = neardup.sign(SHORT_AND_ALIKE, method=method, output=path)
    assert "values" not in vars(found)  # the rows are read when they are used
    assert found.scheme == expected.scheme
    assert len(found) == len(expected)
    for signed in (found, type(found).open(path)):
        assert signed.values.tolist() == expected.values.tolist()
        assert signed.ids.to_pylist() == expected.ids.to_pylist()
    with pytest.raises(neardup.errors.OutputError, match="already exists"):
        neardup.sign(SHORT_AND_ALIKE, method=method, output=path)
    for rows in (["one"], [["one"], ["two"]]):
        assert len(neardup.sign(rows, method=method, output=path, overwrite=True)) == len(rows)
    with pytest.raises(
        neardup.errors.OutputError, match=r"signed\.txt must end in one of \.parquet"
    ):
        neardup.sign(SHORT_AND_ALIKE, method=method, output=tmp_path / "signed.txt")


@pytest.mark.parametrize(("method", "width"), [("minhash", 128), ("simhash", 1)])
def test_no_documents_have_no_rows(method, width):
    found = neardup.sign([], method=method)
    assert found.values.shape == (0, width)
    assert found.similarity(found).tolist() == found.ids.to_pylist() == []


@pytest.mark.parametrize("weights", ["tf", "tfidf"])
def test_threads_change_neither_order_nor_bits(weights, real_texts, tmp_path, monkeypatch):
    monkeypatch.setattr("neardup.executor.SMALL_BYTES", 1)  # else all these files are one batch
    texts = real_texts("zh_laws", 60_000)
    lines = [json.dumps({"id": f"law {i}", "text": text}) + "\n" for i, text in enumerate(texts)]
    for place in range(0, len(lines), 5):  # a file for a few, so that there are several batches
        (tmp_path / f"{place:04}.jsonl").write_text("".join(lines[place : place + 5]))
    method = neardup.SimHash(weights=weights)
    one, two = (neardup.sign(tmp_path, method=method, threads=threads) for threads in (1, 2))
    assert one.to_table().equals(two.to_table())
    assert one.ids.to_pylist() == [f"law {i}" for i in range(len(texts))]
    assert one.values.tolist() == neardup.sign(texts, method=method).values.tolist()


def test_many_small_files_are_one_batch(tmp_path):
    """A batch each would be a row group each in the file that is written."""
    for number in range(30):
        (tmp_path / f"{number:02}.html").write_text(f"<ul>{'<li>' * number}</ul>")
    found = neardup.sign(
        [str(tmp_path)], method=SHINGLES, output=tmp_path.parent / "many.parquet", overwrite=True
    )
    assert pq.ParquetFile(tmp_path.parent / "many.parquet").num_row_groups == 1
    alone = [neardup.sign([str(file)], method=SHINGLES) for file in sorted(tmp_path.iterdir())]
    assert found.to_integers() == [one.to_integers()[0] for one in alone]
    assert found.ids.to_pylist() == [f"{tmp_path}/{number:02}.html" for number in range(30)]


def test_a_row_that_cannot_be_read_has_no_row_or_stops_the_run(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text('{"id": "a", "text": "one two"}\n{"id": \n{"id": "c", "text": "three"}\n')
    assert neardup.sign(path, method="simhash", max_unreadable=1).ids.to_pylist() == ["a", "c"]
    with pytest.raises(neardup.InputError, match=r"in\.jsonl, .*line 2"):
        neardup.sign(path, method="simhash", on_error="stop")


# Pairs.
def distances(table: pa.Table) -> list[tuple]:
    """Return (left_id, right_id, distance) of every pair."""
    return [(row["left_id"], row["right_id"], row["distance"]) for row in table.to_pylist()]


@settings(max_examples=settings().max_examples // 2)  # each writes two files
@given(VALUES, st.integers(0, 16), st.integers(0, 20))
def test_pairs_are_those_of_brute_force_in_any_number_of_files(tmp_path, case, max_distance, cut):
    bits, values = case
    near = [
        value if value is None else value % 2**12 for value in values
    ]  # a dozen bits, so that there are pairs
    table = fingerprint_table(near, {**SCHEME, "bits": bits})
    pq.write_table(table[:cut], tmp_path / "0.parquet")
    pq.write_table(table[cut:], tmp_path / "1.parquet")
    places = [i for i, value in enumerate(near) if value is not None]
    expected = [
        (str(places[left]), str(places[right]), bits_between)
        for left, right, bits_between in hamming.pairs([near[i] for i in places], max_distance)
    ]
    method = neardup.SimHash(max_distance=max_distance)  # the file says how many bits there are
    for source in (
        [tmp_path / "0.parquet", tmp_path / "1.parquet"],
        str(tmp_path / "*.parquet"),
        table,
    ):
        found = neardup.find_pairs(source, method=method)
        assert distances(found.pairs) == expected
        assert found.pairs.schema.names == ["left_id", "right_id", "distance"]
        assert found.report["counts"] == {
            "fingerprints": len(places),
            "without_features": len(values) - len(places),
            "confirmed": len(expected),
        }


@pytest.mark.parametrize("weights", ["tf", "tfidf"])
def test_pairs_among_fingerprints_are_those_among_their_texts(weights, real_texts, tmp_path):
    texts = real_texts("en_licenses", 100_000)
    method = neardup.SimHash(max_distance=6, weights=weights)
    neardup.sign(texts, method=method, output=tmp_path / "fp.parquet")
    by_text = neardup.find_pairs(texts, method=replace(method, confirm="hamming"))
    by_fingerprint = neardup.find_pairs(tmp_path / "fp.parquet", method=method)
    assert by_text.pairs.num_rows > 0
    assert distances(by_fingerprint.pairs) == distances(by_text.pairs)


def test_ids_of_a_file_are_looked_up_beside_empty_rows_and_across_row_groups(tmp_path):
    values = [None, 7, None, 1 << 40, 7, None, 1 << 20, 7]
    table = pa.table({"id": list("abcdefgh"), "fingerprint": pa.array(values, pa.uint64())})
    pq.write_table(table, tmp_path / "one.parquet", row_group_size=3)
    pq.write_table(table.select(["fingerprint"]), tmp_path / "two.parquet", row_group_size=3)
    found = neardup.find_pairs(
        [tmp_path / "one.parquet", tmp_path / "two.parquet"], method=neardup.SimHash()
    )
    sevens = ["b", "e", "h", "1", "4", "7"]
    expected = {*itertools.combinations(sevens, 2), ("d", "3"), ("g", "6")}
    assert {(left, right) for left, right, bits in distances(found.pairs) if bits == 0} == expected
    assert [each["without_features"] for each in found.report["inputs"]] == [3, 3]


def test_a_file_with_a_null_id_is_refused_before_its_fingerprints_are_compared(tmp_path):
    table = pa.table({"id": ["a", None, "c"], "fingerprint": pa.array([1, 1, 9], pa.uint64())})
    pq.write_table(table, tmp_path / "fp.parquet")
    with pytest.raises(
        neardup.errors.ColumnError,
        match=r"fp.parquet has a null in the column 'id'\. Give every row an id",
    ):
        neardup.find_pairs(tmp_path / "fp.parquet", method=neardup.SimHash())


@pytest.mark.parametrize("ids", [[30, 20, 10], ["c", "b", "a"]], ids=["integers", "strings"])
def test_pairs_name_the_ids_of_the_file_as_text(ids):
    found = neardup.find_pairs(
        fingerprint_table([1, 0, 3], SCHEME, ids), method=neardup.SimHash(max_distance=1)
    )
    assert distances(found.pairs) == [(str(ids[0]), str(ids[1]), 1), (str(ids[0]), str(ids[2]), 1)]


def test_files_with_ids_of_both_kinds_meet(tmp_path):
    pq.write_table(fingerprint_table([0], SCHEME, [7]), tmp_path / "0.parquet")
    pq.write_table(fingerprint_table([0], SCHEME, ["b"]), tmp_path / "1.parquet")
    found = neardup.find_pairs(tmp_path / "*.parquet", method=neardup.SimHash())
    assert distances(found.pairs) == [("7", "b", 0)]


def test_fingerprints_of_two_schemes_are_refused_naming_both(tmp_path):
    for name, method in (("a", neardup.SimHash()), ("b", neardup.SimHash(ngram=3, weights="one"))):
        neardup.sign(["one two three"], method=method, output=tmp_path / f"{name}.parquet")
    sources = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    with pytest.raises(neardup.errors.SchemeError) as raised:
        neardup.find_pairs(sources, method=neardup.SimHash())
    said = str(raised.value)
    assert said.startswith("Fingerprints of different schemes cannot be compared: ")
    for name, ngram, weights in (("a", 1, "tf"), ("b", 3, "one")):
        assert f"{tmp_path / name}.parquet has " in said
        assert f"'ngram': {ngram}" in said
        assert f"weights='{weights}'" in said


def test_tables_of_two_corpora_make_two_schemes(tmp_path):
    for name, texts in (("a", ["one two", "three"]), ("b", ["one two", "four"])):
        neardup.sign(
            texts, method=neardup.SimHash(weights="tfidf"), output=tmp_path / f"{name}.parquet"
        )
    with pytest.raises(neardup.errors.SchemeError, match="idf="):
        neardup.find_pairs(
            [tmp_path / "a.parquet", tmp_path / "b.parquet"], method=neardup.SimHash()
        )


def test_texts_among_fingerprints_are_refused_by_name(tmp_path):
    neardup.sign(["one two three"], method="simhash", output=tmp_path / "fp.parquet")
    (tmp_path / "in.jsonl").write_text('{"text": "one"}\n')
    with pytest.raises(
        neardup.InputError, match=r"others are texts: .*in\.jsonl has no fingerprints"
    ):
        neardup.find_pairs(
            [tmp_path / "fp.parquet", tmp_path / "in.jsonl"], method=neardup.SimHash()
        )


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (neardup.MinHash(), "got MinHash"),
        (neardup.SimHash(confirm="jaccard"), "got confirm='jaccard'"),
        (neardup.SimHash(threshold=0.7), "got threshold=0.7"),
    ],
)
def test_what_fingerprints_cannot_tell_is_refused(tmp_path, method, said):
    with pytest.raises(
        neardup.SettingError, match=f"are compared by Hamming distance only: {said}"
    ):
        neardup.find_pairs(fingerprint_table([1], SCHEME), method=method)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"weights": "one"}, "the method has weights='one'; source has weights='tf'"),
        ({"bits": 128}, "the method has bits=128; source has bits=64"),
        ({"scheme": "mfonda"}, "the method has scheme='mfonda'; source has scheme='native'"),
    ],
)
def test_settings_that_the_fingerprints_were_not_made_with_are_refused(settings, said):
    with pytest.raises(neardup.errors.SchemeError, match=said):
        neardup.find_pairs(
            neardup.sign(["a b", "a b c"], method="simhash"), method=neardup.SimHash(**settings)
        )


@pytest.mark.parametrize(
    "settings", [{"weights": "one"}, {"weights": "tfidf"}, {"scheme": "mfonda"}, {"bits": 32}]
)
def test_the_settings_that_made_fingerprints_find_their_pairs(settings):
    method = neardup.SimHash(max_distance=16, **settings)
    signed = neardup.sign(["one two three four", "one two three four"], method=method)
    for source in (signed, signed.to_table()):
        assert neardup.find_pairs(source, method=method).pairs.num_rows == 1


def test_a_folder_of_fingerprints_is_found_too(tmp_path):
    neardup.sign(
        ["one two three", "one two three"], method="simhash", output=tmp_path / "fp.parquet"
    )
    assert neardup.find_pairs(tmp_path, method=neardup.SimHash()).pairs.num_rows == 1


def test_a_folder_of_fingerprints_names_what_it_leaves_out(tmp_path):
    neardup.sign(["a b c", "a b c"], method="simhash", output=tmp_path / "fp.parquet")
    (tmp_path / "notes.xyz").write_text("x")
    found = neardup.find_pairs(tmp_path)
    assert found.pairs.num_rows == 1
    assert found.report["warnings"] == [
        f"Left out 1 file without a known suffix: {tmp_path / 'notes.xyz'}."
    ]


def test_a_file_of_fingerprints_with_two_names_is_read_once(tmp_path):
    neardup.sign(["a b c", "a b c"], method="simhash", output=tmp_path / "fp.parquet")
    (tmp_path / "link.parquet").symlink_to(tmp_path / "fp.parquet")
    found = neardup.find_pairs([tmp_path / "fp.parquet", tmp_path / "link.parquet"])
    assert found.report["counts"]["fingerprints"] == 2


def test_pairs_never_replace_the_file_of_their_fingerprints(tmp_path):
    path = tmp_path / "fp.parquet"
    neardup.sign(["a b c", "a b c"], method="simhash", output=path)
    before = path.read_bytes()
    with pytest.raises(neardup.errors.OutputError, match=r"would replace the input .*fp\.parquet"):
        neardup.find_pairs(path, output=path, overwrite=True)
    assert path.read_bytes() == before


def test_fingerprints_are_not_joined_on_a_cluster():
    signed = neardup.sign(["a b c", "a b c"], method="simhash")
    with pytest.raises(neardup.SettingError, match="on this machine: got engine='spark'"):
        neardup.find_pairs(signed, engine="spark")


def test_a_distance_that_fingerprints_of_a_file_are_too_short_for_is_refused_with_its_bits():
    table = fingerprint_table([1, 2], {**SCHEME, "bits": 32})
    with pytest.raises(
        neardup.SettingError, match="above max_distance=3 and at most bits=32: got 40"
    ):
        neardup.find_pairs(table, method=neardup.SimHash(num_blocks=40))


def test_files_of_minhash_signatures_are_refused_with_what_reads_them(tmp_path):
    neardup.sign(["one two three"], output=tmp_path / "s.parquet")
    with pytest.raises(neardup.InputError, match=r"s\.parquet contains signatures.*LSHIndex\.open"):
        neardup.find_pairs(tmp_path / "s.parquet")


@pytest.mark.parametrize("method", ["minhash", "simhash"])
def test_signed_documents_are_pickled(tmp_path, method):
    signed = neardup.sign(SHORT_AND_ALIKE, method=method)
    written = neardup.sign(SHORT_AND_ALIKE, method=method, output=tmp_path / "s.parquet")
    for sketches in (signed, written, signed[2:4]):
        again = pickle.loads(pickle.dumps(sketches))
        assert again.values.tolist() == sketches.values.tolist()
        assert (again.ids, again.scheme, again.empty.tolist()) == (
            sketches.ids,
            sketches.scheme,
            sketches.empty.tolist(),
        )
    assert signed[[2, 0]].ids.to_pylist() == ["2", "0"]
    assert signed[-1].ids.to_pylist() == ["6"]
    assert repr(signed) == f"{type(signed).__name__}(7 rows, scheme='{method}')"


def test_a_file_of_fingerprints_is_not_read_as_texts(tmp_path: Path):
    neardup.sign(["one two three"], method="simhash", output=tmp_path / "fp.parquet")
    with pytest.raises(
        neardup.errors.ColumnError, match=r"is a table of fingerprints.*neardup find-pairs"
    ):
        neardup.dedup(tmp_path / "fp.parquet", method=neardup.SimHash())
    neardup.sign(["one two three"], method="minhash", output=tmp_path / "signed.parquet")
    with pytest.raises(neardup.errors.ColumnError, match=r"is a table of signatures.* LSHIndex"):
        neardup.dedup(tmp_path / "signed.parquet")
    with pytest.raises(
        neardup.errors.InputError, match=r"are fingerprints, without texts\. Find the pairs"
    ):
        neardup.dedup(neardup.sign(["one two three"], method="simhash"))
