"""Sign documents by a method: a sketch is a row of fixed width."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.arrays import Array, Floats, Ints, Mask
from neardup.decide.outcome import SHORT
from neardup.errors import SettingError
from neardup.features.token_columns import TOKENS_VERSION, HashedTokens
from neardup.files import JsonObject

if TYPE_CHECKING:
    from neardup.methods.base import Method

GIVEN = {"tokens": "given", "version": TOKENS_VERSION}
"""The fields of a scheme whose features are token lists, given by the user."""


class SketchBuffers(NamedTuple):
    """The rows that a sketcher fills, one for each document.

    values : numbers of `method.sketches.dtype`, (num_rows, width). empty : bool (num_rows,), true
    for documents without features.
    """

    values: Array
    empty: Mask


class Sketcher:
    """Signs texts by the stages of a method: `describe`, then `sketch`.

    width : numbers in a row, of the type `method.sketches.dtype`.
    """

    def __init__(self, method: Method, width: int | None = None) -> None:
        self.method = method
        if width is None:
            # A sketch of no texts has the width that the settings imply.
            width = int(method.sketch(method.describe(pa.array([], "large_string"))).shape[1])
        self.width = width

    @property
    def scheme(self) -> JsonObject:
        """The scheme of signed texts."""
        name, unit = self.method.sketches.size
        return {name: unit * self.width} | self.method.scheme()

    @property
    def of_tokens(self) -> TokenSketcher:
        """The sketcher of token lists. Raises SettingError if the method signs texts only."""
        raise SettingError(
            f"{type(self.method.settings).__name__} signs texts only: got lists of tokens. Pass "
            "texts, or use MinHash(...) or SimHash(...)."
        )

    def allocate(self, num_rows: int) -> SketchBuffers:
        """Return buffers for `num_rows` rows; the content of `values` is undefined."""
        dtype = np.dtype(self.method.sketches.dtype)
        # Arrow reuses memory: new pages would take a fifth of the time of signing sets.
        memory = pa.allocate_buffer(dtype.itemsize * num_rows * self.width)
        values = np.frombuffer(memory, dtype).reshape(num_rows, self.width)
        return SketchBuffers(values=values, empty=np.zeros(num_rows, np.bool_))

    def sign_texts(self, texts: pa.Array, out: SketchBuffers) -> int:
        """Fill the rows of texts; return the number of texts with fewer than SHORT features."""
        features = self.method.describe(texts)
        sizes = features.sets.sizes
        out.values[:] = self.method.sketch(features)
        out.empty[:] = sizes == 0
        return int(np.count_nonzero((sizes > 0) & (sizes < SHORT)))

    def warnings(self, num_short: int) -> list[str]:
        """Return warnings about signed documents, by default none.

        num_short : the number of documents with fewer than SHORT features.
        """
        return []


class TokenSketcher(Sketcher, ABC):
    """Signs texts; and token lists, whose tokens are the features as they are, not normalised."""

    weight_range: ClassVar[str]
    """The accepted weights, in words."""

    @property
    def of_tokens(self) -> TokenSketcher:
        """Return this sketcher, which signs token lists itself."""
        return self

    @abstractmethod
    def scheme_of_tokens(self, *, weighted: bool) -> JsonObject:
        """Return the scheme of signed token lists.

        Raises SettingError if the settings need texts.
        """

    @abstractmethod
    def sign_tokens(self, tokens: pa.Array, offsets: Ints, out: SketchBuffers) -> None:
        """Fill the rows of token lists. Requires: `check_lists` found them sound.

        tokens : the tokens of all lists. offsets : int64 (num_rows + 1,); the tokens of row i are
        offsets[i] to offsets[i + 1].
        """

    @abstractmethod
    def sign_weighted(self, hashed: HashedTokens, weights: Floats, out: SketchBuffers) -> None:
        """Fill the rows of token lists with a weight for each token."""

    @abstractmethod
    def accepts(self, weights: Floats) -> Mask:
        """Return a mask of the accepted weights."""
