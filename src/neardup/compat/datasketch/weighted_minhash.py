"""Weighted MinHash as datasketch has it: a signature of weights, by consistent sampling."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from itertools import pairwise
from typing import Any

import numpy as np

from neardup.arrays import Array, Float32s, Ints
from neardup.compat.datasketch.schemes import Signature
from neardup.errors import InputError, SchemeError


class WeightedMinHash(Signature):
    """A signature of weights, made by `WeightedMinHashGenerator`.

    Parameters
    ----------
    seed : that of the generator.
    hashvalues : int64 of shape (sample_size, 2): a dimension, and the step at which it was taken.
    """

    def __init__(self, seed: Any, hashvalues: Ints) -> None:
        self.seed = seed
        self.hashvalues = hashvalues

    def jaccard(self, other: WeightedMinHash) -> float:
        """Estimate the weighted Jaccard similarity, sum of minima by sum of maxima: the share of
        equal samples.
        """
        for name, mine, its in (
            ("seed", self.seed, other.seed),
            ("number of hash values", len(self), len(other)),
        ):
            if mine != its:
                raise SchemeError(
                    f"WeightedMinHash of two kinds do not compare: the {name} is {mine!r} and "
                    f"{its!r}. "
                    "Make both with one generator."
                )
        equal = (
            (np.asarray(self.hashvalues) == np.asarray(other.hashvalues))
            .reshape(len(self), -1)
            .all(axis=1)
        )
        return int(np.count_nonzero(equal)) / len(self)

    def copy(self) -> WeightedMinHash:
        """Return a copy."""
        return WeightedMinHash(self.seed, self.digest())

    def kind(self) -> tuple[Any, ...]:
        """Return the seed and the length."""
        return self.seed, len(self)


class WeightedMinHashGenerator:
    """Make signatures of weights that compare.

    Parameters
    ----------
    dim : the number of weights.
    sample_size : length of a signature.
    seed : of the samples, as `numpy.random.RandomState` takes it.

    Notes
    -----
    Ioffe, Improved Consistent Sampling, Weighted Minhash and L1 Sketching (ICDM 2010), in float32
    as datasketch.

    Examples
    --------
    >>> generator = WeightedMinHashGenerator(3, sample_size=128)
    >>> generator.minhash([1, 2, 3]).jaccard(generator.minhash([1, 2, 3]))
    1.0
    """

    def __init__(self, dim: int, sample_size: int = 128, seed: Any = 1) -> None:
        self.dim = dim
        self.sample_size = sample_size
        self.seed = seed
        generator = np.random.RandomState(seed)
        shape = (sample_size, dim)
        self.rs: Float32s = generator.gamma(2, 1, shape).astype(np.float32)
        self.ln_cs: Float32s = np.log(generator.gamma(2, 1, shape)).astype(np.float32)
        self.betas: Float32s = generator.uniform(0, 1, shape).astype(np.float32)

    def minhash(self, v: Sequence[float] | Array) -> WeightedMinHash:
        """Return the signature of weights, shape (dim,), none of them below 0, one above."""
        if not isinstance(v, Sized):
            raise TypeError(
                f"Input vector must be sized: got {type(v).__name__}. Give a list or an array."
            )
        if len(v) != self.dim:
            raise InputError(f"Input dimension mismatch, expecting {self.dim}: got {len(v)}.")
        signature = self._sample(np.arange(self.dim), np.asarray(v, np.float32), many=False)
        if signature is None:
            raise InputError("Input is all zeros: one weight at least must be above 0.")
        return signature

    def minhash_many(self, X: Any) -> list[WeightedMinHash | None]:
        """Return the signature of each row of a matrix, None for a row of zeros.

        Parameters
        ----------
        X : array of shape (num_rows, dim), or a sparse matrix of scipy.

        Notes
        -----
        As in datasketch, the values are not those of `minhash`: do not compare the two.
        """
        if not isinstance(X, np.ndarray) and not hasattr(X, "tocsr"):
            raise TypeError(
                f"Input X must be a sparse matrix or numpy array: got {type(X).__name__}."
            )
        if X.ndim != 2 or X.shape[1] != self.dim:
            raise InputError(
                f"Input X must have two dimensions, the second of {self.dim}: got shape {X.shape}."
            )
        return [self._sample(columns, weights, many=True) for columns, weights in _rows(X)]

    def _sample(self, columns: Array, weights: Float32s, *, many: bool) -> WeightedMinHash | None:
        """Return the signature of the weights of some columns, None if all are zero; many : of
        `minhash_many`.
        """
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise InputError(
                "A weight must be a number from 0 on: one is negative, infinite or NaN. Leave "
                "such out."
            )
        columns, weights = columns[weights != 0], weights[weights != 0]
        if not len(columns):
            return None
        rs, betas, ln_cs = (table[:, columns] for table in (self.rs, self.betas, self.ln_cs))
        steps = np.floor(np.log(weights) / rs + betas)
        keys = (
            ln_cs - (steps - betas + 1) * rs if many else ln_cs - (steps - betas) * rs - rs
        )  # equal on paper
        least = keys.argmin(axis=1)
        values = np.stack([columns[least], steps[np.arange(self.sample_size), least]], axis=1)
        return WeightedMinHash(self.seed, values.astype(int))


def _rows(matrix: Any) -> list[tuple[Array, Float32s]]:
    """Return the columns that may be not 0, in order, and the weights, of each row."""
    if isinstance(matrix, np.ndarray):
        return [(np.arange(len(row)), row) for row in np.asarray(matrix, np.float32)]
    sparse = matrix.tocsr().astype(np.float32)
    sparse.sum_duplicates()  # also sorts the columns; astype made a copy
    return [
        (sparse.indices[start:end], sparse.data[start:end])
        for start, end in pairwise(sparse.indptr.tolist())
    ]
