"""Measure the mean and the spread of each estimator against theory:
benchmarks/results/accuracy-estimators.md.

    python tools/measure_estimators.py

Every seed draws the permutations and the sets anew; where the sets are the same, the permutations
only. A deviation is divided by the standard error that theory gives, so that its mean over the
seeds is 0 and its spread 1. Two runs print the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from neardup import Signatures
from neardup.fingerprints import minhash

SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
# FEWER_SEEDS for weighted sets of the largest size, which take a quarter of a second
SEEDS = 1_000
FEWER_SEEDS = 100
HASHES = 128
PARTS = 10
# Of a union of ten parts: those of the left set, those of the right one.
SPANS = {
    0.1: ((0, 5), (4, 10)),
    0.5: ((0, 8), (3, 10)),
    0.8: ((0, 9), (1, 10)),
    0.9: ((0, 10), (1, 10)),
}
BITS = (1, 2, 4, 8)
FACTORS = {
    0.5: 0.0,
    0.9: 0.8,
}  # weights are multiplied by a number from here to 1, which makes about this similarity
Floats = npt.NDArray[np.float64]


def sign_parts(size: int, same: bool) -> npt.NDArray[np.uint32]:
    """Return the signatures of the ten parts of a union of `size` elements, shape (PARTS, SEEDS,
    HASHES).

    same : whether all seeds have the same elements, so that only the permutations are left to
    chance.
    """
    values = np.empty((SEEDS, PARTS, HASHES), np.uint32)
    limits = np.arange(PARTS + 1) * (size // PARTS)
    for seed in range(SEEDS):
        elements = np.random.default_rng(SEEDS if same else seed).integers(
            0, 2**64, size, np.uint64
        )
        values[seed] = minhash.sign(elements, limits, HASHES, seed)
    return np.ascontiguousarray(values.swapaxes(0, 1))


def deviations(size: int, same: bool = False) -> Iterator[tuple[str, Floats]]:
    """Yield each estimator of plain sets, and its deviations in standard errors, one a seed."""
    parts = sign_parts(size, same)
    suffix = ", same sets" if same else ""

    def union(span: tuple[int, int]) -> Signatures:
        # The signature of a union is the least of each place: exactly, so one signing serves all
        # similarities.
        return Signatures(
            parts[slice(*span)].min(axis=0), {"name": minhash.SCHEME_NAME, "num_hashes": HASHES}
        )

    pairs = {jaccard: [union(span) for span in spans] for jaccard, spans in SPANS.items()}
    for jaccard, (left, right) in pairs.items():
        error = np.sqrt(jaccard * (1 - jaccard) / HASHES)
        yield f"Jaccard, J = {jaccard}{suffix}", (left.similarity(right) - jaccard) / error
    if same:
        return
    for bits in BITS:
        for jaccard in (0.5, 0.8):
            left, right = pairs[jaccard]
            agree = jaccard + (1 - jaccard) * 2.0**-bits
            error = np.sqrt(agree * (1 - agree) / HASHES) / (1 - 2.0**-bits)
            estimate = left.pack(bits).similarity(right.pack(bits))
            yield (
                f"Jaccard of {bits} bit{'s' * (bits > 1)}, J = {jaccard}",
                (estimate - jaccard) / error,
            )
    yield "number of elements", (union((0, PARTS)).cardinality() / size - 1) * np.sqrt(HASHES - 2)


def weighted_deviations(size: int) -> Iterator[tuple[str, Floats]]:
    """Yield the estimator of weighted sets, and its deviations."""
    seeds = FEWER_SEEDS if size == SIZES[-1] else SEEDS
    limits = np.array([0, size, 2 * size])
    for about, least in FACTORS.items():
        found = np.empty(seeds)
        for seed in range(seeds):
            draw = np.random.default_rng(seed)
            elements = draw.integers(0, 2**64, size, np.uint64)
            left = draw.lognormal(size=size)
            right = left * draw.uniform(least, 1, size)
            signed = minhash.sign_weighted(
                np.tile(elements, 2), np.append(left, right), limits, HASHES, seed
            )
            jaccard = right.sum() / left.sum()  # none weighs more on the right
            error = np.sqrt(jaccard * (1 - jaccard) / HASHES)
            found[seed] = (np.mean(signed[0] == signed[1]) - jaccard) / error
        yield f"weighted Jaccard, J near {about}", found


def main() -> None:
    """Print the table, a row for each estimator."""
    cells: dict[str, list[str]] = {}
    worst = 0.0
    for size in SIZES:
        for name, found in (
            *deviations(size),
            *deviations(size, same=True),
            *weighted_deviations(size),
        ):
            bias = found.mean() * np.sqrt(len(found))
            worst = max(worst, abs(bias))
            cells.setdefault(name, []).append(f"{bias:+.1f}; {found.std(ddof=1):.2f}")
    print("| estimator | " + " | ".join(f"{size:,}" for size in SIZES) + " |")
    print("|---|" + "---:|" * len(SIZES))
    for name, row in cells.items():
        print(f"| {name} | " + " | ".join(row) + " |")
    print(f"\nThe largest bias is {worst:.1f} standard errors.")


if __name__ == "__main__":
    main()
