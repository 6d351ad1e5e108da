"""The face of the package datasketch gives the package's numbers and answers, of version 1 and of
version 2.
"""

from __future__ import annotations

import array
import copy
import io
import json
import math
import pickle
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup.compat.datasketch as latest
from neardup import InputError, NeardupError, SettingError
from neardup.compat.datasketch import LeanMinHash, MinHash, v1
from neardup.compat.datasketch.lsh import integrate, optimal_bands
from neardup.compat.datasketch.lshensemble import optimal_partitions
from neardup.compat.datasketch.schemes import _draw_mersenne
from neardup.errors import SchemeError
from reference import datasketch_cases as cases

SCHEMES = ("affine32", "affine64", "legacy")
DATA = Path(__file__).parents[1] / "data"


def signed(members, **settings):
    one = MinHash(**settings)
    one.update_batch(members)
    return one


# The numbers of the package


def test_a_signature_of_version_1_is_that_of_the_package_s_own_tests():
    """ekzhu/datasketch 1.10.0, test/test_minhash.py."""
    expected = [734825475, 960773806, 359816889, 342714745]
    assert signed([b"Hello"], num_perm=4, seed=1, scheme="legacy").hashvalues.tolist() == expected
    assert v1.MinHash.bulk([[b"Hello"]], num_perm=4)[0].hashvalues.tolist() == expected


def test_a_signature_of_version_2_is_that_of_the_package():
    """datasketch 2.0.0, MinHash(8, seed=42), update of each letter."""
    one = MinHash(num_perm=8, seed=42)
    for letter in (b"a", b"b", b"c"):
        one.update(letter)
    expected = "412266182 1538752921 2188347453 533206133 128775433 483401231 2045031170 437450263"
    assert one.hashvalues.tolist() == [int(value) for value in expected.split()]


@pytest.mark.parametrize(
    ("file", "package", "schemes"),
    [
        pytest.param("datasketch-1.json", v1, (None,), marks=pytest.mark.slow),
        ("datasketch-2.json", latest, ("affine32", "affine64")),
    ],
)
def test_all_answers_are_those_that_the_package_gave(file, package, schemes):
    expected = json.loads((DATA / file).read_text())
    expected.pop("source")
    found = json.loads(json.dumps(cases.answers(package, schemes)))
    assert found.keys() == expected.keys()
    for part, answers in expected.items():
        for question, answer in answers.items():
            assert found[part][question] == answer, f"{part}, {question}"


def test_all_answers_in_the_old_scheme_are_those_of_version_1():
    expected = json.loads((DATA / "datasketch-1.json").read_text())["legacy"]
    assert json.loads(json.dumps(cases.answers(latest, ("legacy",))))["legacy"] == expected


@pytest.fixture
def package():
    return pytest.importorskip("datasketch")


def face_of(package):
    return latest if hasattr(package, "sha1_hash64") else v1


def schemes_of(package):
    return [{"scheme": scheme} for scheme in SCHEMES] if face_of(package) is latest else [{}]


@pytest.mark.parametrize("seed", range(30))
def test_random_signatures_are_those_of_the_installed_package(package, seed):
    generator = random.Random(seed)
    for extra in schemes_of(package):
        settings = {
            "num_perm": generator.choice([1, 5, 64, 200]),
            "seed": generator.randrange(2**32),
        } | extra
        members = [
            generator.randbytes(generator.randint(0, 9))
            for _ in range(generator.choice([0, 1, 30, 300]))
        ]
        theirs, ours = (
            maker.MinHash.bulk([members], **settings)[0] for maker in (package, face_of(package))
        )
        assert np.array_equal(theirs.permutations, ours.permutations)
        assert np.array_equal(theirs.hashvalues, ours.hashvalues)
        assert theirs.hashvalues.dtype == ours.hashvalues.dtype
        for member in members[:20]:
            theirs.update(member)
            ours.update(member)
        assert np.array_equal(theirs.hashvalues, ours.hashvalues)
        for order in "@=<>!":
            lean = package.LeanMinHash(theirs)
            stored = bytearray(lean.bytesize(order))
            lean.serialize(stored, order)
            read = face_of(package).LeanMinHash.deserialize(stored, order)
            assert read.jaccard(ours) == 1.0
            again = bytearray(read.bytesize(order))
            read.serialize(again, order)
            assert again == stored


@pytest.mark.slow
def test_random_parameters_and_partitions_are_those_of_the_installed_package(package):
    from datasketch.lsh import _optimal_param
    from datasketch.lshensemble_partition import optimal_partitions as theirs

    generator = random.Random(0)
    for _ in range(60):
        threshold = generator.choice([generator.random(), generator.randint(0, 20) / 20])
        share = generator.random()
        weights = generator.choice([(0.5, 0.5), (0.0, 1.0), (share, 1.0 - share)])
        num_perm = generator.choice([8, 40, 128])
        assert optimal_bands(threshold, num_perm, weights) == _optimal_param(
            threshold, num_perm, *weights
        )
        sizes = np.array(sorted(generator.sample(range(1, 200), generator.randint(1, 30))))
        counts = np.array([generator.randint(1, 5) for _ in sizes])
        num_part = generator.randint(1, 20)
        assert list(optimal_partitions(sizes, counts, num_part)) == list(
            theirs(sizes, counts, num_part)
        )


class FromDatasketch(pickle.Unpickler):
    """Reads what the package pickled as objects of the face."""

    def find_class(self, module, name):
        return super().find_class(
            module.replace("datasketch", "neardup.compat.datasketch", 1), name
        )


def test_what_the_package_pickled_goes_on_working(package):
    for extra in schemes_of(package):
        many = package.MinHash.bulk(cases.word_sets(5), num_perm=64, **extra)
        index = package.MinHashLSH(0.5, 64)
        forest = package.MinHashLSHForest(64)
        ensemble = package.MinHashLSHEnsemble(0.5, 64, num_part=3)
        for place, one in enumerate(many):
            index.insert(place, one)
            forest.add(place, one)
        forest.index()
        ensemble.index([(place, one, 1 + place) for place, one in enumerate(many)])
        theirs = [
            many,
            package.LeanMinHash(many[3]),
            package.bBitMinHash(many[3], 3),
            index,
            forest,
            ensemble,
        ]
        signatures, lean, bits, index2, forest2, ensemble2 = FromDatasketch(
            io.BytesIO(pickle.dumps(theirs))
        ).load()
        assert lean.jaccard(signatures[3]) == 1.0
        assert bits == latest.bBitMinHash(signatures[3], 3)
        signatures[3].update(b"new")
        for one, mine in zip(many, signatures, strict=True):
            if mine is not signatures[3]:
                assert sorted(index2.query(mine)) == sorted(index.query(one))
                assert sorted(forest2.query(mine, 4)) == sorted(forest.query(one, 4))
                assert sorted(ensemble2.query(mine, 9)) == sorted(ensemble.query(one, 9))
        index2.insert("new", signatures[3])
        index2.add_to_query_buffer(signatures[3])
        assert "new" in index2.collect_query_buffer()


def test_integrals_are_those_of_scipy_to_the_last_bit():
    quad = pytest.importorskip("scipy.integrate").quad
    generator = random.Random(1)
    for _ in range(200):
        b = generator.randint(1, 256)
        r = generator.randint(1, 64)
        t = generator.random()

        def missed(s, b=b, r=r):
            return 1 - (1 - s**r) ** b

        for low, high in ((0.0, t), (t, 1.0)):
            assert integrate(missed, low, high) == quad(missed, low, high)[0]


# Signatures


@pytest.mark.parametrize("scheme", SCHEMES)
@given(st.lists(st.binary(max_size=6), max_size=12), st.lists(st.binary(max_size=6), max_size=12))
def test_the_signature_of_a_union_is_the_least_of_both_in_whatever_way_it_is_made(
    scheme, left, right
):
    settings = {"num_perm": 16, "seed": 3, "scheme": scheme}
    both, one, other = (signed(members, **settings) for members in (left + right, left, right))
    assert MinHash.union(one, other) == both == MinHash.union(other, one, both)
    assert LeanMinHash.union(LeanMinHash(one), LeanMinHash(other)) == LeanMinHash(both)
    for member in reversed(right + left):
        other.update(member)
    assert other == both
    one.merge(both)
    assert one == both


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_share_of_equal_values_estimates_the_jaccard_similarity(scheme):
    """Of 2,000 values, each equal with probability J = 1/3: 5 standard deviations, false alarm
    6e-7.
    """
    numbers = [b"%d" % number for number in range(400)]
    one, other = (
        signed(part, num_perm=2000, scheme=scheme) for part in (numbers[:200], numbers[100:300])
    )
    assert abs(one.jaccard(other) - 1 / 3) < 5 * math.sqrt(1 / 3 * 2 / 3 / 2000)
    # A mean of 2,000 exponentials, in the limit: a relative deviation of 2000 ** -0.5.
    assert abs(one.count() / 200 - 1) < 5 / math.sqrt(2000) + 0.01


def test_copies_grow_on_their_own_and_clear_empties():
    one = signed([b"a"])
    twin = one.copy()
    assert twin == one
    assert twin.permutations is one.permutations
    twin.update(b"b")
    assert twin != one
    twin.clear()
    assert twin.is_empty()
    assert twin == MinHash()
    assert one != "one"
    digest = one.digest()
    digest[:] = 0
    assert not one.is_empty()
    assert one.hashvalues.any()
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", [LeanMinHash, lambda one: latest.bBitMinHash(one, 5)])
def test_short_signatures_survive_copying_and_pickling(kind, scheme, copied):
    one = kind(signed([b"a", b"b"], num_perm=33, scheme=scheme))
    assert copied(one) == one


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_copies_of_signatures_are_updated_on_their_own(scheme, copied):
    one = signed([b"a", b"b"], num_perm=33, scheme=scheme)
    again = copied(one)
    assert again == one
    again.update(b"c")
    assert again != one
    one.update(b"c")
    assert again == one


def test_the_state_of_version_1_has_no_scheme_and_is_of_the_old_one():
    old = v1.MinHash(num_perm=4)
    state = {
        name: value for name, value in old.__dict__.items() if name not in ("scheme", "_gpu_mode")
    }
    again = object.__new__(MinHash)
    again.__setstate__(state)
    again.update(b"Hello")
    assert again.scheme == "legacy"
    assert again.hashvalues.tolist() == [734825475, 960773806, 359816889, 342714745]


def test_stored_values_need_their_scheme_but_not_in_the_face_of_version_1():
    values = v1.MinHash.bulk([[b"Hello"]], num_perm=4)[0].hashvalues
    with pytest.raises(
        SettingError,
        match=r"scheme must be specified explicitly .* 'legacy' for values made by datasketch 1",
    ):
        MinHash(hashvalues=values)
    with pytest.raises(SettingError, match="scheme must be specified explicitly"):
        LeanMinHash(seed=1, hashvalues=values)
    old = v1.MinHash(hashvalues=values)
    assert old.scheme == v1.LeanMinHash(seed=1, hashvalues=values.tolist()).scheme == "legacy"
    assert old.jaccard(MinHash(hashvalues=values, scheme="legacy")) == 1.0
    assert isinstance(v1.LeanMinHash(old), v1.MinHash)
    assert v1.LeanMinHash(old).copy() == v1.LeanMinHash(old)
    assert v1.LeanMinHash(LeanMinHash(signed([b"a"]))).scheme == "affine32"


@pytest.mark.parametrize(
    "settings",
    [{"seed": 2}, {"num_perm": 64}, {"scheme": "legacy"}],
    ids=["seed", "size", "scheme"],
)
@pytest.mark.parametrize("operation", [MinHash.jaccard, MinHash.merge, MinHash.union])
def test_signatures_of_two_kinds_are_refused(operation, settings):
    with pytest.raises(SchemeError, match="MinHash of two kinds do not compare"):
        operation(signed([b"a"]), MinHash(**settings))


@pytest.mark.parametrize(("seed", "b"), [(1, 2), (2, 1)])
def test_low_bits_of_two_kinds_are_refused(seed, b):
    one = latest.bBitMinHash(MinHash(seed=1), 1)
    with pytest.raises(SchemeError, match="do not compare"):
        one.jaccard(latest.bBitMinHash(MinHash(seed=seed), b))


@pytest.mark.parametrize("num_perm", [1, 64])
def test_low_bits_of_two_lengths_are_refused(num_perm):
    one = latest.bBitMinHash(MinHash(), 1)
    with pytest.raises(SchemeError, match=f"num_perm is 128 and {num_perm}"):
        one.jaccard(latest.bBitMinHash(MinHash(num_perm=num_perm), 1))


@pytest.mark.parametrize("r", [0.0, 0.5])
def test_no_low_bits_do_not_compare(r):
    one = latest.bBitMinHash(MinHash(), 0, r)
    with pytest.raises(SchemeError, match="b=0 do not compare"):
        one.jaccard(one)


def test_one_signature_has_no_union():
    one = signed([b"a"])
    with pytest.raises(SettingError, match="Cannot union less than 2 MinHash: got 1"):
        MinHash.union(one)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_perm": 0}, "num_perm must be positive and at most 2\\^32: got 0"),
        ({"scheme": "affine"}, "scheme must be one of affine32, affine64, legacy, got 'affine'"),
        ({"hashfunc": 3}, "The hashfunc must be a callable: got 3"),
        (
            {"hashvalues": [1, 2**32], "scheme": "affine32"},
            "hash values out of range for scheme 'affine32'",
        ),
        ({"hashvalues": np.array([-1]), "scheme": "affine64"}, "got -1 to -1"),
        ({"num_perm": 2, "permutations": ([1, 2], [0, 0]), "scheme": "affine32"}, "must be odd"),
        (
            {"num_perm": 3, "permutations": ([1, 3], [0, 0]), "scheme": "affine32"},
            "mismatch: 3 and 2",
        ),
    ],
)
def test_settings_of_a_signature_that_cannot_be_are_refused(settings, message):
    with pytest.raises(NeardupError, match=message):
        MinHash(**settings)


@pytest.mark.parametrize(
    ("scheme", "hashed"),
    [
        ("affine32", 2**32),
        ("affine32", -1),
        ("affine64", 2**64),
        ("legacy", -1),
    ],
)
def test_hashes_that_a_scheme_has_no_room_for_are_refused(scheme, hashed):
    with pytest.raises(
        InputError, match=f"hashfunc returned a value out of range for scheme '{scheme}'"
    ):
        MinHash(scheme=scheme, hashfunc=lambda hashed: hashed).update(hashed)


def test_hashobj_warns_and_a_processor_that_is_not_there_is_refused():
    with pytest.warns(DeprecationWarning, match="hashobj is deprecated"):
        MinHash(hashobj=hash)
    signed([b"a"], gpu_mode="detect")
    with pytest.raises(RuntimeError, match="gpu_mode='always' is not supported"):
        signed([b"a"], gpu_mode="always")
    signed([], gpu_mode="always")


def test_a_word_that_would_be_drawn_again_is_drawn_again():
    """Words of 61 bits at the very end, one in 2^60, which datasketch's draws reject and draw
    anew.
    """

    class Scripted:
        def __init__(self, words):
            self.words = words
            self.place = 0

        def get_state(self):
            return self.place

        def set_state(self, place):
            self.place = place

        def next(self):
            self.place += 1
            return self.words[self.place - 1]

        def randint(self, low, high, size=None, dtype=None):
            if size is not None:
                return np.array([self.next() for _ in range(size)], dtype)
            while True:
                word = self.next()
                if low + word < high:
                    return dtype(low + word)

    prime = 2**61 - 1
    drawn = _draw_mersenne(Scripted([prime - 1, 5, prime - 1, 7, prime, 9, 11, 13]), 2)
    assert drawn.tolist() == [[6, 8], [prime - 1, 9]]
    assert _draw_mersenne(Scripted([prime - 2, 5, 1, 7]), 2).tolist() == [[prime - 1, 2], [5, 7]]


# Stored signatures


def test_a_lean_signature_does_not_grow_and_has_a_hash():
    lean = LeanMinHash(signed([b"a"]))
    for call in (lean.update, lean.update_batch):
        with pytest.raises(TypeError, match="Cannot update a LeanMinHash"):
            call([b"b"])
    assert hash(lean) == hash(lean.copy())
    assert {lean: 1}[LeanMinHash(signed([b"a"]))] == 1
    assert lean != LeanMinHash(signed([b"b"]))


def lean_signature():
    """Return a lean signature of four values, and its bytes."""
    lean = LeanMinHash(signed([b"a"], num_perm=4))
    stored = bytearray(lean.bytesize())
    lean.serialize(stored)
    return lean, stored


@pytest.mark.parametrize("vector", [[[1, 2]] * 3, [[1]] * 3])
def test_a_matrix_is_no_vector_of_weights(vector):
    generator = latest.WeightedMinHashGenerator(3, sample_size=4)
    with pytest.raises(InputError, match=r"expecting 3: got shape \(3, [12]\)"):
        generator.minhash(vector)


@pytest.mark.parametrize("stop", [0, 10, 12, -1])
def test_bytes_that_are_no_lean_signature_are_refused(stop):
    _, stored = lean_signature()
    with pytest.raises(InputError, match="are no whole LeanMinHash"):
        LeanMinHash.deserialize(stored[:stop])


@pytest.mark.parametrize("stop", [0, 21, -1])
def test_bytes_that_are_no_signature_of_low_bits_are_refused(stop):
    bits = latest.bBitMinHash(lean_signature()[0]).__getstate__()
    with pytest.raises(InputError, match="are no whole bBitMinHash"):
        object.__new__(latest.bBitMinHash).__setstate__(bits[:stop])


def test_stored_low_bits_out_of_range_are_refused_with_the_reason():
    bits = latest.bBitMinHash(lean_signature()[0]).__getstate__()
    bits[8] = 33  # b follows the seed
    with pytest.raises(InputError, match="b is 33, more than 32"):
        object.__new__(latest.bBitMinHash).__setstate__(bits)


def test_a_lean_signature_is_written_to_a_buffer_of_wide_items():
    lean, stored = lean_signature()
    items = array.array("Q", [0] * (len(stored) // 8 + 1))
    lean.serialize(items)
    assert items.tobytes()[: len(stored)] == bytes(stored)


@pytest.mark.parametrize(("b", "r"), [(33, 0.0), (-1, 0.0), (1, 1.5), (1, -0.5)])
def test_low_bits_out_of_range_are_refused(b, r):
    with pytest.raises(SettingError, match=r"must be an? (integer|float) in"):
        latest.bBitMinHash(lean_signature()[0], b, r)


def test_arguments_of_a_lean_signature_are_refused_with_the_reason():
    lean, stored = lean_signature()
    with pytest.raises(InputError, match=r"Unknown permutation scheme code: 9"):
        LeanMinHash.deserialize(bytes(stored[:12]) + b"\x09" + bytes(stored[13:]))
    with pytest.raises(
        InputError, match=r"not have enough space for this MinHash: it has 3 bytes of 32"
    ):
        lean.serialize(bytearray(3))
    with pytest.raises(SettingError, match="give either minhash, or both seed and hashvalues"):
        LeanMinHash(seed=1)
    with pytest.raises(SettingError, match="conflicts with the scheme 'affine32'"):
        LeanMinHash(lean, scheme="legacy")
    with pytest.raises(SettingError, match="hashvalues must not be empty"):
        LeanMinHash(seed=1, hashvalues=[], scheme="affine32")


# Weights


def test_weights_estimate_the_weighted_jaccard_similarity():
    """Of 4,000 samples, each equal with probability (1 + 2) / (2 + 4 + 1): 5 standard deviations,
    false alarm 6e-7.
    """
    generator = latest.WeightedMinHashGenerator(3, sample_size=4000)
    found = generator.minhash([1, 4, 0]).jaccard(generator.minhash([2, 2, 1]))
    expected = 3 / 7
    assert abs(found - expected) < 5 * math.sqrt(expected * (1 - expected) / 4000)


def test_sparse_rows_are_the_dense_ones_also_with_zeros_stored_and_columns_out_of_order():
    sparse = pytest.importorskip("scipy.sparse")
    dense = np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 0.0], [1.0, 0.0, 5.0]])
    generator = latest.WeightedMinHashGenerator(3, sample_size=16)
    expected = generator.minhash_many(dense)
    # Columns 2, 1 and a zero at 0; a zero alone; 5.0 in two parts.
    data = [3.0, 2.0, 0.0, 0.0, 1.0, 2.0, 3.0]
    columns = [2, 1, 0, 1, 0, 2, 2]
    bounds = [0, 3, 4, 7]
    for matrix in (
        sparse.csr_matrix(dense),
        sparse.coo_array(dense),
        sparse.csr_matrix((data, columns, bounds)),
    ):
        assert generator.minhash_many(matrix) == expected
    assert expected[1] is None


def test_given_weights_are_not_changed():
    given_weights = np.array([1, 2], np.float32)
    latest.WeightedMinHashGenerator(2, sample_size=4).minhash(given_weights)
    assert given_weights.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([0, 0], "all zeros"),
        ([1], r"expecting 2: got shape \(1,\)"),
        ([1, -1], "negative"),
        ([1, np.nan], "NaN"),
    ],
    ids=["zeros", "short", "negative", "nan"],
)
def test_weights_that_cannot_be_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        latest.WeightedMinHashGenerator(2, sample_size=4).minhash(wrong)


def test_many_weights_that_cannot_be_are_refused():
    generator = latest.WeightedMinHashGenerator(2, sample_size=4)
    with pytest.raises(InputError, match="negative"):
        generator.minhash_many(np.array([[1, -1]]))
    with pytest.raises(InputError, match=r"the second of 2: got shape \(1, 3\)"):
        generator.minhash_many(np.zeros((1, 3)))
    with pytest.raises(TypeError, match="must be sized"):
        generator.minhash(3)
    with pytest.raises(TypeError, match="sparse matrix or numpy array: got list"):
        generator.minhash_many([[1, 2]])


@pytest.mark.parametrize(
    "other",
    [latest.WeightedMinHashGenerator(2, 4, seed=2), latest.WeightedMinHashGenerator(2, 5)],
    ids=["seed", "size"],
)
def test_weighted_signatures_of_two_kinds_are_not_compared(other):
    signature = latest.WeightedMinHashGenerator(2, sample_size=4).minhash([1, 2])
    assert signature == signature.copy()
    with pytest.raises(SchemeError, match="WeightedMinHash of two kinds"):
        signature.jaccard(other.minhash([1, 2]))


def test_what_neardup_does_not_have_is_imported_from_datasketch() -> None:
    with pytest.raises(
        ImportError, match=r"neardup has no HyperLogLog: .* Import it from datasketch"
    ):
        from neardup.compat.datasketch import HyperLogLog  # noqa: F401
    assert not hasattr(latest, "nothing")
