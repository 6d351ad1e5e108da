"""A batch is decided as its documents would be one by one, whatever it replaces, removes or
repeats.
"""

from __future__ import annotations

import random
from itertools import count, permutations

import pyarrow as pa
import pytest

import neardup
from neardup import Index, MinHash, SimHash
from neardup.index import collection
from reference.index import ReferenceIndex, Strength

pytestmark = pytest.mark.slow

WORDS = [f"word{number}" for number in range(20)]
SETS = MinHash(
    threshold=0.6, ngram=1, num_bands=100, rows_per_band=1
)  # misses a pair at 0.6 with 1e-40
PRINTS = SimHash(confirm="hamming", max_distance=12, ngram=1)
CROWDED = MinHash(threshold=0.3, ngram=1)
NUMBERS = count()


def make_texts(draw: random.Random) -> list[str]:
    """Return some texts and others in which a few words are replaced."""
    texts = [" ".join(draw.sample(WORDS, 8)) for _ in range(3)]
    for text in texts[:]:
        words = text.split()
        for _ in range(2):
            words[draw.randrange(len(words))] = draw.choice(WORDS)
            texts.append(" ".join(dict.fromkeys(words)))
    return [*texts, "..."]


def strength_of(method: MinHash | SimHash, texts: list[str]) -> Strength:
    """Return the similarity of two texts, computed from all of their words or bits."""
    if isinstance(method, SimHash):
        prints = dict(zip(texts, neardup.sign(texts, method=method).to_integers(), strict=True))

        def near(left: str, right: str) -> float | None:
            distance = (prints[left] ^ prints[right]).bit_count()
            return None if "..." in (left, right) or distance > method.max_distance else -distance

        return near

    def similar(left: str, right: str) -> float | None:
        if "..." in (left, right):
            return None
        ours = set(left.split())
        theirs = set(right.split())
        jaccard = len(ours & theirs) / len(ours | theirs)
        return jaccard if jaccard >= method.threshold else None

    return similar


def told(answers: pa.Table) -> list[tuple]:
    return [
        tuple(row.values())
        for row in answers.select(["id", "kept", "repeated", "kept_id"]).to_pylist()
    ]


def table(documents: list[tuple[str, str]]) -> pa.Table:
    ids, texts = zip(*documents, strict=True)
    return pa.table({"id": pa.array(ids, pa.string()), "text": pa.array(texts, pa.string())})


def state_of(index: Index) -> dict[str, str | None]:
    return {row["id"]: row["kept_id"] for part in index.documents() for row in part.to_pylist()}


A = " ".join(WORDS[:10])
B = A + " tail"
C = " ".join(WORDS[5:15])
D = " ".join([*WORDS[5:14], "tail"])
SIX = [("x", B), ("a", C), ("y", B), ("z", B), ("b", D), ("x", C)]


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 48))]
)
def test_all_orders_of_documents_that_replace_others_and_of_their_copies(part):
    for order in list(permutations(SIX))[part::48]:
        with Index.create("memory:", method=SETS) as index:
            reference = ReferenceIndex(strength_of(SETS, [A, B, C, D]))
            for id, text in (("a", A), ("b", D)):
                index.add_if_new(text, id=id)
                reference.add_if_new(id, text)
            expected = [reference.add_if_new(*document) for document in order]
            assert told(index.add_many_if_new(table(order))) == expected, order
            assert state_of(index) == {
                id: stored.kept_id for id, stored in reference.documents.items()
            }, order


def check_sequence(index: Index, method: MinHash | SimHash, draw: random.Random) -> None:
    """Add documents in batches of any size to an empty index, remove some, and compare all that it
    answers.
    """
    texts = make_texts(draw)
    ids = list("abcdefgh")
    reference = ReferenceIndex(strength_of(method, texts))
    for number in range(draw.randrange(1, 5)):
        batch = [(draw.choice(ids), draw.choice(texts)) for _ in range(draw.randrange(1, 13))]
        if draw.random() < 0.2:
            gone = draw.sample(ids, 2)
            index.remove(gone)
            for id in gone:
                reference.remove(id)
        expected = [reference.add_if_new(*document) for document in batch]
        if draw.random() < 0.2:
            name = f"import-{number}"
            index.open_import(name)
            cut = draw.randrange(len(batch)) + 1
            for piece in (batch[:cut], batch[cut:]):
                index.stage(name, table(piece)) if piece else None
            answers = index.commit_import(name)
        else:
            answers = index.add_many_if_new(table(batch))
        assert told(answers) == expected, batch
    assert state_of(index) == {id: stored.kept_id for id, stored in reference.documents.items()}
    hits = index.query_many(texts[:-1], limit=100).to_pylist()
    found = [
        {hit["id"] for hit in hits if hit["query"] == number} for number in range(len(texts) - 1)
    ]
    assert found == [set(reference.query(text)) for text in texts[:-1]]
    assert index.verify() == []


def sequences(slow: int, quick: int = 3) -> list:
    """Return seeds in groups: one for the quick tests, and the others."""
    groups = [
        range(quick),
        *(range(first, min(first + 250, slow)) for first in range(quick, slow, 250)),
    ]
    return [
        pytest.param(group, marks=pytest.mark.slow if group.start else (), id=f"from {group.start}")
        for group in groups
    ]


@pytest.mark.parametrize("method", [SETS, PRINTS], ids=["sets", "fingerprints"])
@pytest.mark.parametrize("seeds", sequences(1000))
def test_batches_in_memory_are_decided_as_one_by_one(method, seeds):
    storage = "fingerprints" if method is PRINTS else "features"
    for seed in seeds:
        with Index.create("memory:", method=method, storage=storage) as index:
            check_sequence(index, method, random.Random(seed))


@pytest.mark.parametrize(
    "store",
    ["folder", *(pytest.param(name, marks=pytest.mark.slow) for name in ("postgres", "redis"))],
)
@pytest.mark.parametrize("seeds", sequences(60, 2))
def test_batches_in_every_store_are_decided_as_one_by_one(store, seeds, tmp_path, request):
    server = None if store == "folder" else request.getfixturevalue(f"{store}_server")
    address = (
        tmp_path / "a.index" if server is None else server.address(f"sequence-{next(NUMBERS)}")
    )
    with Index.create(address, method=SETS) as index:
        for seed in seeds:
            check_sequence(index, SETS, random.Random(seed))
            index.remove(list(state_of(index)))
            if seed % 10 == 0:
                index.compact()


@pytest.mark.slow
@pytest.mark.parametrize("method", [CROWDED, PRINTS], ids=["sets", "fingerprints"])
@pytest.mark.parametrize("seeds", sequences(50))
def test_crowded_buckets_of_batches_are_those_of_documents_one_by_one(method, seeds):
    options = {
        "method": method,
        "max_bucket_size": 2,
        "storage": "fingerprints" if method is PRINTS else "features",
    }
    for seed in seeds:
        draw = random.Random(seed)
        texts = make_texts(draw)
        ids = list("abcdefghijkl")
        with (
            Index.create("memory:", **options) as batches,
            Index.create("memory:", **options) as singles,
        ):
            for _ in range(4):
                batch = [
                    (draw.choice(ids), draw.choice(texts)) for _ in range(draw.randrange(1, 20))
                ]
                answers = batches.add_many_if_new(table(batch))
                expected = [singles.add_if_new(text, id=id) for id, text in batch]
                names = ["id", "kept", "repeated", "kept_id", "truncated"]
                assert answers.select(names).to_pylist() == [
                    {name: getattr(answer, name) for name in names} for answer in expected
                ], batch
            assert state_of(batches) == state_of(singles)


def test_a_call_is_one_change_of_the_store_whatever_it_repeats_or_replaces(tmp_path, monkeypatch):
    with Index.create(tmp_path / "a.index", method=SETS) as index:
        index.add_many_if_new(table([("a", A), ("b", D)]))
        written = []
        write = index.opened.store._write_all
        monkeypatch.setattr(
            index.opened.store, "_write_all", lambda parts: (written.append(parts), write(parts))
        )
        index.add_many_if_new(table([*SIX, *SIX]))
        assert len(written) == 1
        index.open_import("monday")
        index.stage("monday", table(SIX[::-1]))
        index.stage("monday", table(SIX))
        index.commit_import("monday")
        assert len(written) == 2


def test_pages_that_changed_a_little_are_replaced_in_few_steps():
    draw = random.Random(1)
    texts = [
        " ".join(draw.choices([f"w{number}" for number in range(5000)], k=40)) for _ in range(400)
    ]
    with Index.create("memory:") as index:
        index.add_many(table([(f"page-{number}", text) for number, text in enumerate(texts)]))
        steps = []
        decide = collection.next_step
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                collection,
                "next_step",
                lambda *given, **named: steps.append(1) or decide(*given, **named),
            )
            answers = index.add_many_if_new(
                table([(f"page-{number}", f"{text} today") for number, text in enumerate(texts)])
            )
        assert answers["kept"].to_pylist() == [True] * 400
        assert len(steps) == 1  # each is similar to the page that it replaces alone
