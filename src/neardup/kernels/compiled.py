"""The decorator of every kernel, and the cache folder of compiled code.

Numba names a cached function by the file it is in, and does not notice that a helper from another
file has changed. So the folder is named by a digest of all of `kernels/`, Numba, Python and the
processor: another version of any of them has another folder. A cached function is pickled code, so
the folder must belong to this user, or to root, and be writable for its owner only. Without such a
folder, each process compiles for itself, as it does with a Numba that lacks a private interface of
`numba_internals`.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding
import numba
import numpy as np

internals: Any
try:
    from neardup.kernels import numba_internals as internals
except (ImportError, AttributeError) as error:
    internals = None
    warnings.warn(
        f"Numba {numba.__version__} lacks a private interface that neardup uses ({error}), so each "
        "process compiles its kernels again, which takes seconds. Install an earlier Numba, or a "
        "later neardup.",
        RuntimeWarning,
        stacklevel=2,
    )

# The types of numbers in kernels.
U8 = np.uint8
U32 = np.uint32
U64 = np.uint64
I64 = np.int64

config: Any = numba.config  # its names are set from the environment
_PREFIX = "kernels-"
_DIGEST_LENGTH = 20
# Other programs may have folders with the same prefix, which are not ours to remove.
_FOLDERS = _PREFIX + "[0-9a-f]" * _DIGEST_LENGTH
# Folders kept, the latest changed: for environments that share a base, or versions that alternate.
_NUM_KEPT = 4
_NO_FOLDER = (
    "neardup found no folder to cache compiled code in, so each process compiles it again, which "
    "takes seconds. Set NUMBA_CACHE_DIR to a folder that only this user can write to."
)


def kernel(
    function: Callable[..., Any] | None = None,
    *,
    allocates: bool = False,
    nogil: bool = True,
    inline: bool = False,
) -> Any:
    """Compile a function with Numba when it is first called, and cache the code for later
    processes.

    allocates : whether it makes or returns arrays, writes tuples as rows, or calls a kernel that
    allocates; in others, Numba does not count references, which takes atomic operations for each
    array at each call. nogil : whether other threads run meanwhile; kernels that touch Python
    objects must not let them. inline : whether LLVM inlines the function in its callers, however
    large it is.
    """
    if function is None:
        return functools.partial(kernel, allocates=allocates, nogil=nogil, inline=inline)
    njit: Any = functools.partial(numba.njit, nogil=nogil)
    if internals is None or config.DISABLE_JIT:
        return njit(function)
    njit = functools.partial(
        njit, no_cfunc_wrapper=True, **({} if allocates else internals.UNCOUNTED)
    )
    # Two versions: this one is called from Python and cached, the other by kernels.
    dispatcher = njit(pipeline_class=internals.KernelCompiler)(function)
    folder = cache_folder()
    if folder is not None:
        internals.keep(dispatcher, function, str(folder), _digest(), _warn_of_no_folder)
    callee = njit(
        no_cpython_wrapper=True, forceinline=inline, pipeline_class=internals.CalleeCompiler
    )(function)
    internals.let_kernels_call(dispatcher, callee)
    return dispatcher


def _warn_of_no_folder() -> None:
    warnings.warn(_NO_FOLDER, RuntimeWarning, stacklevel=3)


@functools.cache
def cache_folder() -> Path | None:
    """Return the folder of compiled kernels, created if needed, or None with a warning.

    The first of these that is writable, or otherwise readable: NUMBA_CACHE_DIR alone if it is set;
    the package's own `__pycache__`; the user's cache folder; a folder of the user in the folder for
    temporary files.
    """
    if internals is None:
        return None
    name = f"{_PREFIX}{_digest()}"
    readable = None
    for base in _bases():
        # In a shared folder, anyone may have made the base: both levels must be private.
        if base.is_shared and not _make_private(base.path):
            continue
        folder = base.path / name
        if not os.path.isdir(folder):
            _remove_old(base.path)
        if not _make_private(folder):
            continue
        if os.access(folder, os.W_OK):
            return folder
        readable = readable or folder
    if readable is None:
        _warn_of_no_folder()
    return readable


class _Base(NamedTuple):
    """A possible parent of the folder. is_shared : whether it lies in a folder of all users."""

    path: Path
    is_shared: bool = False


def _bases() -> Iterator[_Base]:
    """Yield possible parents of the folder, the preferred first."""
    if config.CACHE_DIR:
        yield _Base(Path(config.CACHE_DIR))
        return
    yield _Base(Path(__file__).parent / "__pycache__")
    local = (
        os.environ.get("LOCALAPPDATA")
        if sys.platform == "win32"
        else os.environ.get("XDG_CACHE_HOME")
    )
    home = os.path.expanduser("~")
    if local or home != "~":
        yield _Base(Path(local or os.path.join(home, ".cache")) / "neardup")
    user = str(os.getuid()) if hasattr(os, "getuid") else "user"
    yield _Base(Path(tempfile.gettempdir()) / f"neardup-{user}", is_shared=True)


def _make_private(folder: Path) -> bool:
    """Make a folder that only its owner can write to; return whether there is one, and its owner
    can be trusted.
    """
    try:
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o755, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode):
            return False
        if not hasattr(os, "getuid"):
            return True
        return found.st_uid in (os.getuid(), 0) and not found.st_mode & (
            stat.S_IWGRP | stat.S_IWOTH
        )
    except OSError:
        return False


def _remove_old(base: Path) -> None:
    """Remove the folders of other versions, but for the few that changed last, before a new one is
    made.
    """
    try:
        folders = sorted(base.glob(_FOLDERS), key=lambda folder: folder.stat().st_mtime)
    except OSError:  # another process removes them
        return
    for folder in folders[: max(0, len(folders) - _NUM_KEPT + 1)]:
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _digest() -> str:
    """Return a digest of all that compiled code depends on."""
    # Compiled code fits one processor, and machines may share a home folder.
    digest = hashlib.sha256()
    sources = (file for file in files(__package__).iterdir() if file.name.endswith(".py"))
    for source in sorted(sources, key=lambda file: file.name):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    features = sorted(
        name for name, there in llvmlite.binding.get_host_cpu_features().items() if there
    )
    settings = [
        getattr(config, name, None) for name in ("BOUNDSCHECK", "OPT", "CPU_NAME", "CPU_FEATURES")
    ]
    versions = (
        numba.__version__,
        llvmlite.__version__,
        platform.python_implementation(),
        sys.version,
    )
    digest.update(
        repr((versions, settings, llvmlite.binding.get_host_cpu_name(), features)).encode()
    )
    return digest.hexdigest()[:_DIGEST_LENGTH]


def compile_seconds() -> float:
    """Return how long this process has compiled kernels so far."""
    return internals.clock.total() if internals is not None else 0.0


def is_compiling() -> bool:
    """Return whether a kernel is being compiled at this moment."""
    return internals is not None and internals.clock.depth > 0
