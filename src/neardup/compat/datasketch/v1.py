"""The face of datasketch 1.x: where no scheme is given, it is "legacy", the only one that version
has.

``from neardup.compat.datasketch.v1 import MinHash, MinHashLSH`` instead of ``from datasketch import
...``.
"""

from neardup.compat import datasketch as latest
from neardup.compat.datasketch import *  # noqa: F403

__all__ = [
    name for name in latest.__all__ if name != "sha1_hash64"
]  # which that version does not have


class MinHash(latest.MinHash):  # type: ignore[no-redef]
    """A `neardup.compat.datasketch.MinHash` of scheme "legacy", unless another is given.

    >>> minhash = MinHash(num_perm=4)
    >>> minhash.update(b"Hello")
    >>> minhash.hashvalues.tolist()
    [734825475, 960773806, 359816889, 342714745]
    """

    _scheme_if_none = "legacy"


class LeanMinHash(latest.LeanMinHash, MinHash):  # type: ignore[no-redef]
    """A `neardup.compat.datasketch.LeanMinHash` of scheme "legacy", unless another is given."""
