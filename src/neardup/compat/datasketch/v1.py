"""Drop-in replacement for datasketch 1.x: the default scheme is "legacy", its only scheme.

Use ``from neardup.compat.datasketch.v1 import MinHash, MinHashLSH`` instead of ``from datasketch
import ...``.
"""

from neardup.compat import datasketch as latest
from neardup.compat.datasketch import *  # noqa: F403

__all__ = [name for name in latest.__all__ if name != "sha1_hash64"]  # new in version 2


class MinHash(latest.MinHash):  # type: ignore[no-redef]
    """A `neardup.compat.datasketch.MinHash` whose default scheme is "legacy".

    >>> minhash = MinHash(num_perm=4)
    >>> minhash.update(b"Hello")
    >>> minhash.hashvalues.tolist()
    [734825475, 960773806, 359816889, 342714745]
    """

    _scheme_if_none = "legacy"


# `_scheme_if_none` comes from the second base: the first one does not set it.
class LeanMinHash(latest.LeanMinHash, MinHash):  # type: ignore[no-redef]
    """A `neardup.compat.datasketch.LeanMinHash` whose default scheme is "legacy"."""
