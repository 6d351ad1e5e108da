"""The decorator of every kernel, and the folder that holds what it compiles.

Numba names a cached function by the file it is in, and does not notice that a helper from another file has changed. So
the folder is named by a digest of all of `kernels/`, Numba, Python and the processor: another version of any of them
has another folder. A cached function is pickled code, so the folder must belong to this user, or to root, and nobody
else may write to it. Where there is no such folder, each process compiles for itself.
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
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
import numba
from numba.core import config as _numba_config
from numba.core import event
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator
from numba.core.runtime.nrt import rtsys

config: Any = _numba_config  # its names are set from the environment
_PREFIX = "kernels-"
_NUM_KEPT = 4  # folders, the latest used: a few environments that share a base, or versions that take turns
_NO_FOLDER = (
    "neardup found no folder to cache compiled code in, so each process compiles it again, which takes seconds. Set "
    "NUMBA_CACHE_DIR to a folder that only this user can write to."
)


def kernel(function: Callable[..., Any] | None = None, *, nogil: bool = True, inline: str = "never") -> Any:
    """Compile a function with Numba when it is first called, and keep what was compiled for the next process.

    nogil : whether other threads run meanwhile; kernels that touch Python objects must not let them. inline : "always"
    where the callers are to contain the function's code.
    """
    if function is None:
        return functools.partial(kernel, nogil=nogil, inline=inline)
    njit: Any = functools.partial(numba.njit, nogil=nogil, inline=inline, no_cfunc_wrapper=True)
    dispatcher = njit()(function)
    if config.DISABLE_JIT:
        return dispatcher
    if cache_folder() is not None:
        dispatcher._cache = _KernelCache(function)
    dispatcher._compilation_chain_init_hook = _load_no_extensions
    _let_kernels_call(dispatcher, njit(no_cpython_wrapper=True)(function))
    return dispatcher


def _load_no_extensions() -> None:
    """Do nothing, where Numba looks in all installed packages for types that they add: kernels have none of these."""


def _let_kernels_call(dispatcher: Any, inner: Any) -> None:
    """Have other kernels call `inner`, the same function without what a call from Python requires.

    They contain the code of what they call, so `inner` is not cached. An argument that is a constant does not make
    another specialisation: LLVM knows the constant once it has inlined the call.
    """

    def get_call_template(args: Any, kws: dict[str, Any]) -> Any:
        return inner.get_call_template([numba.types.unliteral(arg) for arg in args], kws)

    dispatcher.get_call_template, dispatcher.get_overload = get_call_template, inner.get_overload


@functools.cache
def cache_folder() -> Path | None:
    """Return the folder of compiled kernels, made if need be, or None with a warning where there cannot be one.

    The first of these that can be written to, or else the first that can be read: NUMBA_CACHE_DIR alone where it is
    set; the package's own `__pycache__`; the user's folder for caches; one of the user's in the folder for temporary
    files.
    """
    name = f"{_PREFIX}{_digest()}"
    readable = None
    for base, shared in _bases():
        if (shared and not _make_private(base)) or not _make_private(base / name):
            continue
        if os.access(base / name, os.W_OK):
            return base / name
        readable = readable or base / name
    if readable is not None:
        return readable
    warnings.warn(_NO_FOLDER, RuntimeWarning, stacklevel=2)
    return None


def _bases() -> Iterator[tuple[Path, bool]]:
    """Yield folders that may hold that of the kernels, the preferred first, and whether they lie in a shared one."""
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR), False
        return
    yield Path(__file__).parent / "__pycache__", False
    local = os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else os.environ.get("XDG_CACHE_HOME")
    home = os.path.expanduser("~")
    if local or home != "~":
        yield Path(local or os.path.join(home, ".cache")) / "neardup", False
    user = str(os.getuid()) if hasattr(os, "getuid") else "user"
    yield Path(tempfile.gettempdir()) / f"neardup-{user}", True


def _make_private(folder: Path) -> bool:
    """Make a folder that only its owner can write to; return whether there is one, and its owner can be trusted."""
    try:
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            _remove_old(folder.parent)
            folder.mkdir(mode=0o755, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode):
            return False
        if not hasattr(os, "getuid"):
            return True
        return found.st_uid in (os.getuid(), 0) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    except OSError:
        return False


def _remove_old(base: Path) -> None:
    """Remove the folders of other versions, but for the few that were used last."""
    try:
        folders = sorted(base.glob(f"{_PREFIX}*"), key=lambda folder: folder.stat().st_mtime)
    except OSError:  # another process removes them
        return
    for folder in folders[: max(0, len(folders) - _NUM_KEPT + 1)]:
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _digest() -> str:
    """Return a digest of all that compiled code depends on."""
    digest = hashlib.sha256()
    sources = (file for file in files(__package__).iterdir() if file.name.endswith(".py"))
    for source in sorted(sources, key=lambda file: file.name):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    features = sorted(name for name, there in llvmlite.binding.get_host_cpu_features().items() if there)
    settings = (config.BOUNDSCHECK, config.OPT, config.CPU_NAME, config.CPU_FEATURES)
    versions = (numba.__version__, llvmlite.__version__, platform.python_implementation(), sys.version)
    digest.update(repr((versions, settings, llvmlite.binding.get_host_cpu_name(), features)).encode())
    return digest.hexdigest()[:20]


class _Clock(event.Listener):
    """Adds up the time in which Numba compiles: in one thread at a time, a kernel's helpers within the kernel."""

    def __init__(self) -> None:
        self.seconds, self.depth, self._begun = 0.0, 0, 0.0

    def on_start(self, event: Any) -> None:
        if self.depth == 0:
            self._begun = time.perf_counter()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self._begun

    def total(self) -> float:
        return self.seconds + (time.perf_counter() - self._begun if self.depth else 0.0)


_clock = _Clock()
event.register("numba:compile", _clock)


def compile_seconds() -> float:
    """Return how long this process has compiled kernels so far."""
    return _clock.total()


def is_compiling() -> bool:
    """Return whether a kernel is being compiled at this moment."""
    return _clock.depth > 0


class _Locator(_CacheLocator):
    """Where Numba keeps a kernel: always the one folder."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._py_file, self._lineno = file, function.__code__.co_firstlineno

    def ensure_cache_path(self) -> None:
        os.makedirs(self.get_cache_path(), mode=0o755, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return _digest()

    def get_disambiguator(self) -> str:
        return str(self._lineno)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func, py_file)


class _CacheImpl(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012

    def reduce(self, data: Any) -> Any:
        """Return what is kept of a kernel: no environment without constants, for which Numba loads a module."""
        *rest, environments = super().reduce(data)
        return (*rest, tuple(environment for environment in environments if environment.consts))


class _CacheFile(IndexDataCacheFile):
    """As Numba's, but for two processes that compile at once: each signature has a file of its own name.

    Numba numbers the files as they come, so that two signatures may get one number, and one is run in the place of
    the other.
    """

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except Exception:  # cut short by a power failure, it raises whatever its unpickling meets
            return {}

    def save(self, key: Any, data: Any) -> None:
        overloads = self._load_index()
        number = int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:8], "big")
        overloads[key] = self._data_name(number)
        self._save_data(overloads[key], data)
        self._save_index(overloads)


class _KernelCache(FunctionCache):
    """As Numba's, but what cannot be read is compiled anew, and what cannot be written is not kept."""

    _impl_class = _CacheImpl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _CacheFile(self._cache_path, self._impl.filename_base, _digest())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(
            target_context
        )  # Numba's own loads all that compilation requires, which takes as long as Numba
        try:
            return self._load_overload(sig, target_context)
        except Exception:  # as above
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:
            warnings.warn(_NO_FOLDER, RuntimeWarning, stacklevel=2)
