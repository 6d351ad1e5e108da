"""The private interfaces of Numba that kernels use: its cache, its compiler, the calls between
kernels, the clock of compilation.

No other module uses any. Importing this one raises ImportError or AttributeError if a name is
missing.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import compiler, event
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    _CacheLocator,
)
from numba.core.codegen import JITCodeLibrary
from numba.core.cpu import CPUTargetOptions
from numba.core.dispatcher import Dispatcher
from numba.core.runtime.nrt import rtsys

_USED: dict[Any, tuple[str, ...]] = {
    CPUTargetOptions: ("_nrt",),
    CompileResultCacheImpl: ("_locator_classes", "reduce"),
    JITCodeLibrary: (
        "_ensure_finalized",
        "_finalize_final_module",
        "_optimize_final_module",
        "_optimize_functions",
        "get_pointer_to_function",
    ),
    Dispatcher: ("_compilation_chain_init_hook", "get_call_template", "get_overload"),
    FunctionCache: ("_impl_class", "_load_overload", "load_overload", "save_overload"),
    IndexDataCacheFile: ("_data_name", "_load_index", "_save_data", "_save_index", "save"),
    rtsys: ("initialize",),
}
for _owner, _names in _USED.items():
    for _name in _names:
        getattr(_owner, _name)  # raises if it is missing
UNCOUNTED = {"_nrt": False}
"""Options of a kernel in which references to arrays are not counted."""


def keep(
    dispatcher: Any, function: Callable[..., Any], folder: str, stamp: str, warn: Callable[[], None]
) -> None:
    """Cache the compiled code of a function in the folder of all kernels.

    stamp : names the version of the code. warn : called where a file cannot be written.
    """
    _Locator.folder = folder
    _Locator.stamp = stamp
    dispatcher._cache = _KernelCache(function, warn)


# Passes for code that kernels do not have: closures, functions inlined by Numba, expressions with
# whole arrays, and `with`.
_UNUSED_PASSES = (
    "InlineClosureLikes",
    "InlineInlinables",
    "InlineOverloads",
    "NopythonRewrites",
    "WithLifting",
)


class _KernelLibrary(JITCodeLibrary):
    """The code of a kernel and its callees, which LLVM optimises as a whole only, and not each
    function before.
    """

    def _optimize_functions(self, ll_module: Any) -> None:
        """Do nothing, as `_optimize_final_module` follows."""


class _CalleeLibrary(_KernelLibrary):
    """The code of a kernel for its callers: they contain and optimise it, so it is not optimised by
    itself, nor translated to machine code.
    """

    def _optimize_final_module(self) -> None:
        """Do nothing, as the callers optimise the code."""

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function: 0, as there is no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> _CalleeLibrary:
        """Return this library, for its `set_env`: Numba calls no other method of the result."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing, as the code of a callee has no Python objects."""
        assert not environment.consts, name


class KernelCompiler(compiler.Compiler):
    """The compiler of a kernel that Python calls."""

    library: type[_KernelLibrary] = _KernelLibrary

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *rest: Any) -> None:
        super().__init__(typingctx, targetctx, library, *rest)
        self.state.library = self.library(targetctx.codegen(), "kernel")
        self.state.library.enable_object_caching()

    def define_pipelines(self) -> list[Any]:
        """Return the passes of Numba without the unused ones."""
        pipelines: list[Any] = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.passes[:] = [
                entry for entry in pipeline.passes if entry[0].__name__ not in _UNUSED_PASSES
            ]
        return pipelines


class CalleeCompiler(KernelCompiler):
    """The compiler of a kernel that other kernels call."""

    library = _CalleeLibrary


def let_kernels_call(dispatcher: Any, inner: Any) -> None:
    """Make other kernels call `inner`, the same function without an entry for Python.

    They contain the code of their callees, so `inner` is not cached, and it is compiled by
    `CalleeCompiler`. An argument that is a constant
    does not make another specialisation: LLVM knows the constant once it has inlined the call.
    """

    def get_call_template(args: Any, kws: dict[str, Any]) -> Any:
        return inner.get_call_template([types.unliteral(arg) for arg in args], kws)

    dispatcher.get_call_template = get_call_template
    dispatcher.get_overload = inner.get_overload
    dispatcher._compilation_chain_init_hook = _load_no_extensions


def _load_no_extensions() -> None:
    """Do nothing, where Numba looks in all installed packages for types that they add: kernels have
    none of these.
    """


class _Clock(event.Listener):
    """Adds up the time in which Numba compiles: in one thread at a time, a kernel's helpers within
    the kernel.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.depth = 0
        self._begun = 0.0

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


clock = _Clock()
event.register("numba:compile", clock)


class _Locator(_CacheLocator):
    """Location of a cached kernel: always the one folder. folder, stamp : set by `keep`."""

    folder = stamp = ""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._py_file = file
        self._lineno = function.__code__.co_firstlineno

    def ensure_cache_path(self) -> None:
        if self.folder:
            os.makedirs(self.folder, mode=0o755, exist_ok=True)

    def get_cache_path(self) -> str:
        return self.folder

    def get_source_stamp(self) -> str:
        return self.stamp

    def get_disambiguator(self) -> str:
        return str(self._lineno)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func, py_file)


class _CacheImpl(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012

    def reduce(self, data: Any) -> Any:
        """Return the data of a kernel to cache, without an empty environment, for which Numba would
        load a module.
        """
        *rest, environments = super().reduce(data)
        return (*rest, tuple(environment for environment in environments if environment.consts))


class _CacheFile(IndexDataCacheFile):
    """The index of Numba, safe for two processes that compile at once: each signature has its own
    file.

    Numba numbers the files as they come, so that two signatures may get one number, and one would
    run instead of the other.
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
    """The cache of Numba, except that unreadable code is compiled anew, and unwritable code is not
    kept.
    """

    _impl_class = _CacheImpl

    def __init__(self, function: Callable[..., Any], warn: Callable[[], None]) -> None:
        super().__init__(function)
        self._cache_file = _CacheFile(self._cache_path, self._impl.filename_base, _Locator.stamp)
        self._warn = warn

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # Numba's own loads all that compilation requires, which takes as long as to load Numba.
        rtsys.initialize(target_context)
        try:
            return self._load_overload(sig, target_context)
        except Exception:  # as above
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:
            self._warn()


_KernelCache(keep, lambda: None)  # raises if an attribute is missing
