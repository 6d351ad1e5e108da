"""MinHash signatures as a library: what is signed, what estimates say on average, what is
refused.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup import InputError, MinHash, SettingError, sign
from neardup.errors import ColumnError, OutputError, SchemeError
from neardup.features.shingles import shingle_documents
from neardup.fingerprints.minhash import draw_permutations
from neardup.fingerprints.minhash import sign as sign_hashes
from neardup.fingerprints.signatures import PackedSignatures, Signatures
from reference import minhash as reference
from reference.strings import hash_string

NUM_SEEDS = 1000
NUM_HASHES = 128
TOKENS = st.text(st.sampled_from(["a", "b", "é", "漢", "😀", "\0", " "]), max_size=20)
SETS = st.lists(st.one_of(st.none(), st.lists(TOKENS, max_size=6)), max_size=6)


def small(column, **settings) -> Signatures:
    return sign(column, method=MinHash(num_hashes=8, **settings), threads=1)


def rows_of(signatures: Signatures) -> list[list[int]]:
    return signatures.values.tolist()


# What is signed.
@given(SETS)
def test_a_set_of_tokens_has_the_signature_of_the_reference(sets):
    drawn = draw_permutations(8, 1)
    factors = drawn.factors.tolist()
    multipliers = drawn.multipliers[:8].tolist()
    hashes = [[hash_string(token.encode()) for token in one or [] if token] for one in sets]
    assert rows_of(small(sets or [[]])) == [
        reference.sign(one, factors, multipliers) for one in hashes or [[]]
    ]


@given(SETS, st.integers(0, 3), st.integers(0, 3))
def test_every_arrow_layout_of_the_same_sets_is_signed_alike(sets, start, chunk):
    expected = rows_of(small(pa.array(sets, pa.list_(pa.string()))))
    for strings in (
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.dictionary(pa.int32(), pa.string()),
    ):
        assert rows_of(small(pa.array(sets, pa.list_(strings)))) == expected
        assert rows_of(small(pa.array(sets, pa.large_list(strings)))) == expected
    assert rows_of(small(pa.array(sets, pa.list_view(pa.string())))) == expected
    whole = pa.array(sets, pa.list_(pa.string()))
    assert rows_of(small(whole[start:])) == expected[start:]
    assert rows_of(small(pa.chunked_array([whole[:chunk], whole[chunk:]]))) == expected


def test_null_lists_that_cover_values_are_empty():
    column = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3]), pa.array(["a", "b", "c"]), mask=pa.array([False, True, False])
    )
    assert rows_of(small(column)) == rows_of(small([["a"], None, ["c"]]))
    pairs = pa.FixedSizeListArray.from_arrays(pa.array(["a", "b", "c", "d"]), 2)
    assert rows_of(small(pairs[1:])) == rows_of(small([["c", "d"]]))


@pytest.mark.parametrize(
    "method", [MinHash(), MinHash(tokens="chars", seed=7), MinHash(tokens=str.split, ngram=2)]
)
@pytest.mark.parametrize(
    "column_of",
    [list, pa.array, lambda texts: pa.array(texts).dictionary_encode(), iter],
    ids=["list", "array", "dictionary", "iterator"],
)
def test_texts_are_signed_as_dedup_signs_them(real_texts, column_of, method):
    texts = real_texts("en_licenses", 30_000)
    shingles = shingle_documents(pa.array(texts, pa.large_string()), method)
    expected = sign_hashes(shingles.hashes, shingles.offsets, 16, method.seed)
    signed = sign(column_of(texts), method=replace(method, num_hashes=16))
    assert (signed.values == expected).all()


def test_threads_and_batches_change_nothing(monkeypatch):
    sets = [[str(number % 7), str(number)] for number in range(3000)]
    expected = rows_of(sign(sets, method=MinHash(num_hashes=4), threads=1))
    monkeypatch.setattr("neardup.engines.local.sign._MAX_BYTES", 500)
    monkeypatch.setattr("neardup.api.sign._ROWS_AT_ONCE", 700)
    assert rows_of(sign(sets, method=MinHash(num_hashes=4), threads=3)) == expected
    assert rows_of(sign(pa.array(sets), method=MinHash(num_hashes=4))) == expected


def test_a_frame_of_another_library_gives_its_column():
    polars = pytest.importorskip("polars")
    pandas = pytest.importorskip("pandas")
    expected = rows_of(small(["one text", "another"]))
    assert rows_of(small(polars.Series(["one text", "another"]))) == expected
    assert rows_of(small(pandas.Series(["one text", "another"]))) == expected


def test_one_text_or_set_is_signed_as_a_row_of_a_column():
    method = MinHash(ngram=2)

    def equal(*signatures: np.ndarray) -> bool:
        return len({tuple(one.ravel().tolist()) for one in signatures}) == 1

    assert equal(*(sign(one, method=method).values for one in ("a b c", ["a b c"])))
    assert equal(sign([("a", "b")]).values, sign({"a", "b"}).values, sign([["b", "a", "b"]]).values)
    assert equal(
        sign([{"a": 2}]).values, sign({"a": 2}).values, sign([[("a", 1), ("a", 1.0)]]).values
    )


@pytest.mark.parametrize("nothing", [[[]], "", {}], ids=["no tokens", "no text", "no weights"])
def test_nothing_has_a_signature_of_ones(nothing):
    assert sign(nothing).values.tolist() == [[2**32 - 1] * 128]


WEIGHTED = st.lists(
    st.dictionaries(TOKENS.filter(bool), st.floats(0.001, 1000), max_size=5), max_size=5
)


@given(WEIGHTED)
def test_every_form_of_weighted_sets_is_signed_alike(sets):
    sets = [{"x": 1.0}, *sets]
    expected = rows_of(small(sets))
    pairs = [list(one.items()) for one in sets]
    assert rows_of(small([*pairs])) == expected
    assert rows_of(small(pa.array(pairs, pa.map_(pa.string(), pa.float64())))) == expected
    structs = pa.list_(pa.struct([("feature", pa.string()), ("weight", pa.float64())]))
    assert rows_of(small(pa.array([None, *pairs], structs)[1:])) == expected
    halves = [
        [(feature, weight / 2) for feature, weight in one] * 2 + [("", 1.0), ("zero", 0)]
        for one in pairs
    ]
    assert rows_of(small(halves)) == expected


# Comparing, merging, counting.
@given(
    st.lists(st.lists(st.integers(0, 5), max_size=6), min_size=1, max_size=5), st.integers(1, 16)
)
def test_estimates_are_the_share_of_equal_places_row_by_row_or_one_with_many(sets, bits):
    signatures = sign([[str(one) for one in row] for row in sets], method=MinHash(num_hashes=20))
    rows = rows_of(signatures)
    for first in range(len(sets)):
        expected = [
            sum(a == b for a, b in zip(rows[first], row, strict=True)) / 20
            if sets[first] and other
            else 0.0
            for row, other in zip(rows, sets, strict=True)
        ]
        assert signatures[first].similarity(signatures).tolist() == expected
        assert signatures.similarity(signatures[first]).tolist() == expected
        packed = signatures.pack(bits)
        estimates = packed[first].similarity(packed)
        assert estimates.tolist() == packed.similarity(packed[first]).tolist()
        for equal, estimate in zip(expected, estimates.tolist(), strict=True):
            assert (
                (estimate == equal)
                if equal in (0.0, 1.0) and bits == 16
                else estimate >= equal - 2.0**-bits / 0.5
            )
    assert signatures.similarity(signatures).tolist() == [float(bool(row)) for row in sets]


@pytest.mark.parametrize("num_hashes", [1, 7, 8, 100])
@pytest.mark.parametrize("bits", [1, 3, 16])
def test_packed_bits_are_those_of_the_mixed_hashes(num_hashes, bits):
    signatures = sign([["a", "b"], []], method=MinHash(num_hashes=num_hashes))
    packed = signatures.pack(bits)
    assert packed.values.shape == (2, bits, math.ceil(num_hashes / 8))
    assert packed.nbytes == 2 * bits * math.ceil(num_hashes / 8)
    assert packed.scheme == {**signatures.scheme, "bits": bits}

    def mixed(value: int) -> int:  # MurmurHash3's fmix32, as published
        value ^= value >> 16
        value = value * 0x85EBCA6B % 2**32
        value ^= value >> 13
        value = value * 0xC2B2AE35 % 2**32
        return value ^ value >> 16

    planes = np.unpackbits(packed.values[0], axis=1, bitorder="little")
    for place, value in enumerate(signatures.values[0].tolist()):
        assert sum(int(planes[bit, place]) << bit for bit in range(bits)) == mixed(value) % 2**bits
    assert not planes[:, num_hashes:].any()


@given(SETS.filter(bool), st.data())
def test_a_merged_signature_is_that_of_the_union(sets, data):
    others = data.draw(
        st.lists(st.lists(TOKENS, max_size=4), min_size=len(sets), max_size=len(sets))
    )
    unions = [[*(one or []), *other] for one, other in zip(sets, others, strict=True)]
    left = small([["a"], *sets])
    right = small([["a"], *others])
    assert rows_of(left.merge(right)) == rows_of(small([["a"], *unions]))
    assert rows_of(left.union()) == rows_of(
        small([["a", *(token for one in sets for token in one or [])]])
    )


def test_counts_of_nothing():
    nothing = small([["a"]])[:0]
    assert len(nothing) == 0
    assert nothing.cardinality().tolist() == nothing.similarity(nothing).tolist() == []
    assert nothing.union().empty.tolist() == [True]
    assert small([["a"], []]).cardinality().tolist()[1] == 0.0
    assert len(sign([])) == len(sign(pa.array([], pa.string()))) == len(nothing.pack(3)) == 0


def test_rows_are_taken_as_of_an_array():
    signatures = small([["a"], ["b"], ["c"]])
    values = rows_of(signatures)
    for some in (signatures, signatures.pack(16)):
        assert [
            len(some[rows]) for rows in (0, -1, slice(1, 3), [0, 2], np.array([True, False, True]))
        ] == [
            1,
            1,
            2,
            2,
            2,
        ]
        assert some[[2, 0]].similarity(some[0]).tolist()[1] == 1.0
        with pytest.raises(IndexError):
            some[3]
    assert rows_of(signatures[1:]) == values[1:]
    assert rows_of(signatures[-1]) == values[2:]


# Files.
@given(SETS.filter(any), st.sampled_from([None, 1, 4, 16]))
def test_a_file_gives_back_what_was_saved(tmp_path, sets, bits):
    signatures = small(sets)
    path = tmp_path / "s.parquet"
    ids = [f"id {number}" for number in range(len(sets))]
    if bits is None:
        signatures.save(path, ids, overwrite=True)
        for found in (Signatures.open(path), Signatures.from_table(signatures.to_table(ids))):
            assert rows_of(found) == rows_of(signatures)
            assert found.scheme == signatures.scheme
        sliced = Signatures.from_table(signatures.to_table(ids)[1:])
        assert rows_of(sliced) == rows_of(signatures)[1:]
    else:
        packed = signatures.pack(bits)
        packed.save(path, ids, overwrite=True)
        for read in (
            PackedSignatures.open(path),
            PackedSignatures.from_table(packed.to_table(ids)),
        ):
            assert (read.values == packed.values).all()
            assert (read.empty == packed.empty).all()
            assert read.scheme == packed.scheme
    table = pq.read_table(path)
    assert table["id"].to_pylist() == ids
    assert table["signature"].is_null().to_pylist() == signatures.empty.tolist()


def test_a_column_of_signatures_is_little_endian_bytes():
    signatures = small([["a"], ["b"]])
    table = signatures.to_table()
    assert table.schema.types == [pa.large_string(), pa.binary(32)]
    assert table["signature"][1].as_py() == signatures.values[1].astype("<u4").tobytes()
    assert table["id"].to_pylist() == ["0", "1"]


# What is refused.
@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            lambda: sign([["a"]], method=MinHash(num_hashes=16)),
            "the first has num_hashes=8; the second has num_hashes=16",
        ),
        (lambda: small([["a"]], seed=2), "the first has seed=1; the second has seed=2"),
        (
            lambda: small(["a"]),
            r"the first has features=.*'given'.*; the second has features=.*'words'",
        ),
        (
            lambda: small([{"a": 1.0}]),
            "the first has name='minhash'; the second has name='weighted-minhash'",
        ),
        (
            lambda: Signatures(np.zeros((1, 9), np.uint32), small([["a"]]).scheme),
            "the second has num_hashes=9",
        ),
    ],
)
def test_signatures_of_another_scheme_seed_or_length_are_refused_with_both_named(other, said):
    signatures = small([["a"]])
    for refused in (signatures.similarity, signatures.merge):
        with pytest.raises(
            SchemeError, match=rf"Signatures of different schemes cannot be compared: .*{said}"
        ):
            refused(other())


def test_packed_signatures_of_other_bits_are_refused():
    signatures = small([["a"]])
    with pytest.raises(SchemeError, match="the first has bits=3; the second has bits=4"):
        signatures.pack(3).similarity(signatures.pack(4))


@pytest.mark.parametrize(
    "refused",
    [lambda weighted: weighted.merge(weighted), Signatures.union, Signatures.cardinality],
    ids=["merge", "union", "cardinality"],
)
def test_weighted_signatures_are_neither_merged_nor_counted(refused):
    with pytest.raises(
        SchemeError, match=r"weighted sets cannot be (merged|counted).*Sign the tokens without"
    ):
        refused(small([{"a": 1.0}]))


def test_rows_that_do_not_pair_are_refused():
    signatures = small([["a"], ["b"], ["c"]])
    with pytest.raises(
        InputError, match=r"row by row, or one row with many: got 3 rows and 2\. Pass equal numbers"
    ):
        signatures.similarity(signatures[:2])


@pytest.mark.parametrize("bits", [0, 17, 1.0, True, None])
def test_bits_outside_their_limits_are_refused(bits):
    with pytest.raises(
        SettingError, match=r"bits must be a whole number of 1 or more and at most 16: got"
    ):
        small([["a"]]).pack(bits)


@pytest.mark.parametrize("num_hashes", [0, -1, 65_537, 1.0, True])
def test_lengths_outside_their_limits_are_refused(num_hashes):
    with pytest.raises(
        SettingError,
        match=r"num_hashes must be a whole number of 1 or more and at most 65536 or None: got",
    ):
        sign(["a"], method=MinHash(num_hashes=num_hashes))
    with pytest.raises(SettingError, match="threads must be"):
        sign(["a"], threads=0)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (5, "Cannot sign int: 5"),
        (b"bytes", "Cannot sign bytes: b'bytes'"),
        (["a", 1], "Row 1 cannot be signed: got 1 "),
        (["a", ["b"]], r"Row 1 cannot be signed: got \['b'\]"),
        ([["a"], None, "b"], "Row 2 cannot be signed: got 'b'"),
        ([["a"], ["b", 1]], r"Row 1 cannot be signed: got \['b', 1\]"),
        ([{"a": 1}, ["b"]], r"Row 1 cannot be signed: got \['b'\]"),
        ([{"a": "1"}], "Row 0 cannot be signed"),
        ([[("a", "b")]], "Row 0 cannot be signed.*pairs of a string and a finite number"),
        (["\ud800"], "Row 0 cannot be signed"),
        (pa.array([1]), "contains texts, lists of strings.*: got int64"),
        (
            pa.array([[1]]),
            "contains texts, lists of strings.*: got list<item: int64>|got list<element: int64>",
        ),
        (pa.table({"a": ["x"]}), "No column of text in source"),
        (pa.array([b"ok", b"\xff"]), "The text in row 1 is not UTF-8"),
        ([{"a": 1.0}, {}, {"b": -1.0}], "from 1e-100 to 1e.100: got -1.0 for 'b' in row 2"),
        ([{"a": float("inf")}], "got inf for 'a' in row 0"),
        ([{"a": 1e-200}], "got 1e-200 for 'a'"),
        (
            pa.array([[("a", None)]], pa.map_(pa.string(), pa.float32())),
            "got None for 'a' in row 0",
        ),
    ],
)
def test_a_column_of_anything_else_is_refused_with_the_row(column, said):
    with pytest.raises(InputError, match=said):
        sign(column)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_first_bad_row_is_named_however_many_threads_there_are(monkeypatch, threads):
    monkeypatch.setattr("neardup.api.sign._ROWS_AT_ONCE", 2)
    rows = [{"a": 1.0}] * 20
    with pytest.raises(InputError, match=r"got -1\.0 for 'b' in row 7"):
        sign([*rows[:7], {"b": -1.0}, *rows, ["no weights"], {"c": -1.0}], threads=threads)
    with pytest.raises(InputError, match="Row 7 cannot be signed: got 5 "):
        sign([*rows[:7], 5, *rows, {"b": -1.0}], threads=threads)


@pytest.mark.parametrize("thing", [5, b"bytes", None])
def test_one_thing_that_cannot_be_signed_is_refused(thing):
    with pytest.raises(InputError, match="Cannot sign"):
        sign(thing)


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {b"neardup.scheme": b"{half"},
        {b"neardup.scheme": b"[]"},
        {b"neardup.scheme": b"{}"},
    ],
    ids=["none", "damaged", "list", "empty"],
)
def test_a_table_without_a_scheme_is_refused(metadata):
    table = small([["a"], ["b"]]).to_table().replace_schema_metadata(metadata)
    with pytest.raises(
        InputError, match="The scheme in the metadata of the table is not that of signatures"
    ):
        Signatures.from_table(table)


def test_files_of_anything_else_are_refused(tmp_path):
    signatures = small([["a"], ["b"]])
    path = tmp_path / "s.parquet"
    with pytest.raises(
        InputError, match=r"s\.parquet cannot be read as Parquet.*Pass a file of signatures"
    ):
        Signatures.open(path)
    signatures.save(path)
    with pytest.raises(
        OutputError, match=r"s\.parquet already exists\. Use another file, or pass overwrite=True"
    ):
        signatures.save(path)
    with pytest.raises(OutputError, match="Create the folder, or use another one"):
        signatures.save(tmp_path / "nowhere" / "s.parquet")
    with pytest.raises(InputError, match=r"There are 2 signatures: got 1 ids"):
        signatures.save(path, ["a"], overwrite=True)
    with pytest.raises(
        InputError,
        match=r"is not that of packed signatures of 32 bytes: got .*PackedSignatures\.open",
    ):
        PackedSignatures.open(path)
    signatures.pack(4).save(path, overwrite=True)
    with pytest.raises(InputError, match=r"is not that of signatures of 4 bytes: got"):
        Signatures.open(path)
    with pytest.raises(
        ColumnError, match=r"the table has no column 'signature' .*: it has id \(string\)"
    ):
        Signatures.from_table(pa.table({"id": ["a"]}))
    assert sorted(tmp_path.iterdir()) == [path]


def column_of(limits: list[int], offsets: list[int], element: pa.DataType) -> pa.Array:
    """Return a column of lists as a stranger's file may hold it: Arrow looks at the ends of the
    offsets only.
    """
    count = len(offsets) - 1
    (list_limits, string_offsets) = (np.array(one, np.int32) for one in (limits, offsets))
    strings = pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(string_offsets), pa.py_buffer(b"abbccc")]
    )
    values = strings
    if element != pa.string():
        values = pa.Array.from_buffers(
            element, count, [None], children=[strings, pa.array([1.0] * count)]
        )
    kind = pa.list_(element)
    buffers = [None, pa.py_buffer(list_limits)]
    return pa.Array.from_buffers(kind, len(limits) - 1, buffers, children=[values])


@pytest.mark.parametrize(
    "element", [pa.string(), pa.struct([("feature", pa.string()), ("weight", pa.float64())])]
)
@pytest.mark.parametrize(
    ("limits", "offsets", "said"),
    [
        ([0, 1, 3], [0, 1, 1 << 30, 6], "Row 1 of the column refers to memory outside"),
        ([0, 1, 3], [0, 1, -5, 6], "Row 1 of the column refers to memory outside"),
        ([0, 1, 3], [0, -5, 3, 6], "Row 0 of the column refers to memory outside"),
        ([0, 9, 3], [0, 1, 3, 6], "Row 0 of the column refers to memory outside"),
        ([0, -4, 3], [0, 1, 3, 6], "Row 0 of the column refers to memory outside"),
        ([0, 2, 1, 3], [0, 1, 3, 6], "Row 1 of the column refers to memory outside"),
    ],
)
def test_columns_that_point_outside_of_their_memory_are_refused(limits, offsets, said, element):
    assert small(column_of([0, 1, 3], [0, 1, 3, 6], element)).values.shape == (2, 8)
    with pytest.raises(InputError, match=said):
        small(column_of(limits, offsets, element))


# Values that must not change: they are in files. The first are those of the plain twin.
def test_the_scheme_of_today_gives_these_values():
    assert rows_of(sign([["a", "b", "c"]], method=MinHash(num_hashes=4))) == GOLDEN_TOKENS
    assert (
        rows_of(sign([{"a": 1.0, "b": 2.5, "c": 0.1}], method=MinHash(num_hashes=4)))
        == GOLDEN_WEIGHTED
    )
    assert small([["a"]]).scheme == {
        "name": "minhash",
        "version": 2,
        "seed": 1,
        "num_hashes": 8,
        "features": {"tokens": "given", "version": 2},
    }


GOLDEN_TOKENS = [[455034134, 559794289, 975127162, 412418557]]
GOLDEN_WEIGHTED = [[2882395590, 1713312733, 821771811, 1756895051]]


def test_files_that_a_folder_leaves_out_are_counted(tmp_path):
    (tmp_path / "one.txt").write_text("one two three")
    (tmp_path / "old.doc").write_text("x")
    (warning,) = sign(tmp_path).report["warnings"]
    assert warning.startswith("Left out 1 file without a known suffix:")
