"""The cases of run_minhash.py as data: which tools do which job, and with which settings."""

from __future__ import annotations

from simhash_cases import Case

HASHES = 128
NGRAM = 5
BANDS = 16
ROWS = 8


def texts(tokens: str) -> list[Case]:
    """Return who signs texts. tokens : words or chars."""
    return [
        Case("neardup", "neardup", f"sign, {tokens}", threads, {"tokens": tokens})
        for threads in (2, 1)
    ]


def sets() -> list[Case]:
    """Return who signs sets of tokens."""
    cases = []
    for threads in (2, 1):
        cases += [
            Case("neardup", "neardup", "sign, Arrow lists", threads, {"form": "arrow"}),
            Case("neardup", "neardup", "sign, Python lists", threads, {"form": "python"}),
            Case("rensa", "rensa", "RMinHash.from_token_sets", threads, {"form": "objects"}),
            Case(
                "rensa",
                "rensa",
                "RMinHash.digest_matrix_from_token_sets",
                threads,
                {"form": "matrix"},
            ),
            Case("rensa", "rensa", "CMinHash.from_token_sets", threads, {"form": "circulant"}),
        ]
    return [
        *cases,
        Case("datasketch", "datasketch", "MinHash.bulk, xxHash", 1, {"hash": "xxhash"}),
        Case("datasketch", "datasketch", "MinHash.bulk, SHA-1", 1, {"hash": "sha1"}),
        Case("gaoya", "gaoya", "bulk_hash_docs, words of a text", 1),
    ]


def index() -> list[Case]:
    """Return who fills an index with signatures and asks it for each."""
    cases = []
    for threads in (2, 1):
        cases += [
            Case("neardup", "neardup", "LSHIndex: add_many, query_many", threads, {"form": "many"}),
            Case("rensa", "rensa", "RMinHashLSH: insert_many, query_all", threads),
            Case("gaoya", "gaoya", "MinHashStringIndex: par_bulk_...", threads),
        ]
    return [
        *cases,
        Case("datasketch", "datasketch", "MinHashLSH: insert, query", 1, {}, 10**5),
        Case(
            "neardup", "neardup", "LSHIndex: add, query, one by one", 1, {"form": "single"}, 10**5
        ),
    ]
