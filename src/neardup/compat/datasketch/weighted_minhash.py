"""WeightedMinHash of datasketch: signatures of weights by consistent sampling."""

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
    seed : the seed of the generator.
    hashvalues : int64 of shape (sample_size, 2): the sampled dimension, and its step.
    """

    def __init__(self, seed: Any, hashvalues: Ints) -> None:
        self.seed = seed
        self.hashvalues = hashvalues

    def jaccard(self, other: WeightedMinHash) -> float:
        """Estimate the weighted Jaccard similarity by the share of equal samples.

        It is the sum of the minima of the weights divided by the sum of their maxima.
        """
        for name, value, other_value in (
            ("seed", self.seed, other.seed),
            ("number of hash values", len(self), len(other)),
        ):
            if value != other_value:
                raise SchemeError(
                    f"WeightedMinHash of two kinds do not compare: the {name} is {value!r} and "
                    f"{other_value!r}. Make both with one generator."
                )
        # A sample is a pair of a column and a step: both must be equal.
        equal = np.asarray(self.hashvalues) == np.asarray(other.hashvalues)
        is_equal_sample = equal.reshape(len(self), -1).all(axis=1)
        return int(np.count_nonzero(is_equal_sample)) / len(self)

    def copy(self) -> WeightedMinHash:
        """Return a copy."""
        return WeightedMinHash(self.seed, self.digest())

    def kind(self) -> tuple[Any, ...]:
        """Return the seed and the length."""
        return self.seed, len(self)


class WeightedMinHashGenerator:
    """Compute comparable signatures of weights.

    Parameters
    ----------
    dim : the number of weights.
    sample_size : the length of a signature.
    seed : the seed of the samples, for `numpy.random.RandomState`.

    Notes
    -----
    Ioffe, Improved Consistent Sampling, Weighted Minhash and L1 Sketching (ICDM 2010), in float32
    like datasketch.

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
        # The order of these draws is a part of the scheme.
        self.rs: Float32s = generator.gamma(2, 1, shape).astype(np.float32)
        self.ln_cs: Float32s = np.log(generator.gamma(2, 1, shape)).astype(np.float32)
        self.betas: Float32s = generator.uniform(0, 1, shape).astype(np.float32)

    def minhash(self, v: Sequence[float] | Array) -> WeightedMinHash:
        """Return the signature of weights, shape (dim,): none is negative, not all are 0."""
        if not isinstance(v, Sized):
            raise TypeError(
                f"Input vector must be sized: got {type(v).__name__}. Give a list or an array."
            )
        weights = np.asarray(v, np.float32)
        if weights.shape != (self.dim,):
            raise InputError(
                f"Input dimension mismatch, expecting {self.dim}: got shape {weights.shape}."
            )
        signature = self._sample(np.arange(self.dim), weights, rounds_as_many=False)
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
        As in datasketch, the values differ from the values of `minhash`: do not compare them.
        """
        if not isinstance(X, np.ndarray) and not hasattr(X, "tocsr"):
            raise TypeError(
                f"Input X must be a sparse matrix or numpy array: got {type(X).__name__}."
            )
        if X.ndim != 2 or X.shape[1] != self.dim:
            raise InputError(
                f"Input X must have two dimensions, the second of {self.dim}: got shape {X.shape}."
            )
        return [
            self._sample(columns, weights, rounds_as_many=True) for columns, weights in _rows(X)
        ]

    def _sample(
        self, columns: Array, weights: Float32s, *, rounds_as_many: bool
    ) -> WeightedMinHash | None:
        """Return the signature of the weights of some columns, None if all are zero.

        rounds_as_many : whether to round as `minhash_many` does.
        """
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise InputError(
                "A weight must be a number from 0 on: one is negative, infinite or NaN. Leave such "
                "out."
            )
        # The logarithm of 0 would be infinite; such a dimension is never sampled.
        is_sampled = weights != 0
        columns = columns[is_sampled]
        weights = weights[is_sampled]
        if not len(columns):
            return None
        rs = self.rs[:, columns]
        betas = self.betas[:, columns]
        ln_cs = self.ln_cs[:, columns]
        steps = np.floor(np.log(weights) / rs + betas)
        distances = steps - betas
        # Equal in real numbers, but not in float32.
        keys = ln_cs - (distances + 1) * rs if rounds_as_many else ln_cs - distances * rs - rs
        sampled = keys.argmin(axis=1)
        sampled_steps = steps[np.arange(self.sample_size), sampled]
        values = np.stack([columns[sampled], sampled_steps], axis=1)
        # Steps were whole floats.
        return WeightedMinHash(self.seed, values.astype(np.int64))


def _rows(matrix: Any) -> list[tuple[Array, Float32s]]:
    """Return the columns that may be nonzero, in order, and the weights of each row."""
    if isinstance(matrix, np.ndarray):
        return [(np.arange(len(row)), row) for row in np.asarray(matrix, np.float32)]
    sparse = matrix.tocsr().astype(np.float32)
    sparse.sum_duplicates()  # also sorts the columns; astype made a copy
    return [
        (sparse.indices[start:end], sparse.data[start:end])
        for start, end in pairwise(sparse.indptr.tolist())
    ]
