"""What STYLE.md says of the shape of the code: layers, sizes, public names, documented parameters,
constraints.
"""

from __future__ import annotations

import ast
import inspect
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.api.index import AddOptions
from neardup.api.index_lines import LineOptions
from neardup.api.sign import SketchOptions
from neardup.errors import NeardupError, SettingError
from neardup.runs.options import ReadingSettings
from neardup.runs.run import (
    BatchOptions,
    CacheOptions,
    CorpusOptions,
    CountOptions,
    FolderOptions,
    PairOptions,
    ReadingOptions,
    SelectionOptions,
    TextOptions,
)
from neardup.settings.constraints import Constraint, constraints_of
from neardup.settings.contamination import ContaminationOutput, ContaminationSettings, ItemSettings
from neardup.settings.methods import Jieba, MinHash, SimHash, Vectors
from neardup.settings.passages import PassageInputs, PassageOutput, PassageSettings
from neardup.settings.run import (
    EarlierSettings,
    EngineSettings,
    FileSettings,
    FolderSettings,
    GroupSettings,
    KnownSettings,
    OutputSettings,
    RunSettings,
    SelectionSettings,
)
from neardup.settings.service import ServiceSettings
from reference.checks import for_every
from reference.sources import MODULES, SOURCE, nodes_of, tree_of, unit_of

# From the bottom up. A module imports from rows below its own, or from its own package. The stages
# are in order.
ROWS = (
    ("answers", "errors", "version"),
    ("arrays", "executor", "files", "locks"),
    ("settings", "progress", "schemas"),
    ("kernels",),
    ("documents",),
    ("formats",),
    ("features",),
    ("fingerprints",),
    ("candidates",),
    ("verify",),
    ("decide",),
    ("methods", "stores"),
    ("runs",),
    ("report",),
    ("output",),
    ("sketches", "suggestion"),
    ("index",),
    ("engines",),
    ("results",),
    ("api",),
    ("lsh", "spark"),
    ("__init__",),
    ("service", "client", "compat"),
    ("integrations",),
    ("cli",),
    ("__main__",),
)
ROW_OF = {unit: row for row, units in enumerate(ROWS) for unit in units}


def imports_of(module: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the full name of everything that a module imports, wherever in it."""
    for node in nodes_of(MODULES[module], ast.Import, ast.ImportFrom):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        else:
            package = ["neardup", *module.split("/")[:-1]]
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            if name == "neardup":
                yield from ((node.lineno, f"neardup.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, name


def own_imports_of(module: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the unit of what a module imports from neardup."""
    for line, name in imports_of(module):
        if name == "neardup":
            yield line, "__init__"
        elif name.startswith("neardup."):
            unit = name.split(".")[1]
            yield (
                line,
                unit if unit in ROW_OF else "__init__",
            )  # a public name of the package itself


def functions_of(module: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return nodes_of(MODULES[module], ast.FunctionDef, ast.AsyncFunctionDef)


def test_every_package_and_module_has_its_row():
    assert {unit_of(module) for module in MODULES} <= set(ROW_OF)


@for_every(MODULES)
def test_imports_point_down_only(module):
    own = unit_of(module)
    wrong = [
        f"{MODULES[module]}:{line} imports {unit}"
        for line, unit in own_imports_of(module)
        if unit != own and ROW_OF[unit] >= ROW_OF[own]
    ]
    assert not wrong


@for_every(
    [module for module in MODULES if module.startswith("engines/") and module.count("/") == 2]
)
def test_no_engine_imports_another(module):
    """What several engines need is in runs/, or beside their folders."""
    engine = module.split("/")[1]
    others = {name for name in ("local", "spark", "index") if name != engine}
    wrong = [
        name
        for _, name in imports_of(module)
        if name.startswith("neardup.engines.") and name.split(".")[2] in others
    ]
    assert not wrong


@for_every([module for module in MODULES if unit_of(module) == "kernels"])
def test_kernels_know_nothing_of_neardup_or_arrow(module):
    for line, name in imports_of(module):
        assert not name.startswith("pyarrow"), f"{module}:{line}"
        assert not name.startswith("neardup") or name.startswith("neardup.kernels"), (
            f"{module}:{line}"
        )


@for_every([module for module in MODULES if unit_of(module) != "kernels"])
def test_numba_is_imported_by_kernels_only(module):
    assert not [
        name for _, name in imports_of(module) if name.split(".")[0] in ("numba", "llvmlite")
    ]


@for_every(MODULES)
def test_nothing_unpickles_or_evaluates(module):
    assert not {name.split(".")[0] for _, name in imports_of(module)} & {
        "pickle",
        "marshal",
        "shelve",
        "dill",
    }
    names = {node.id for node in nodes_of(MODULES[module], ast.Name)}
    assert not names & {"eval", "exec"}


# Module, rule -> the reason why it does not use neardup.files. The list may only get shorter.
FILE_EXCEPTIONS = {
    ("cli/settings", "write_text"): "click's formatter of help has a method of this name",
    (
        "report/contents",
        "except OSError: pass",
    ): "a system without /proc reports the peak memory in another way",
    (
        "stores/embedded/store",
        "except OSError: pass",
    ): "the disk was full, and the compaction that follows makes room",
}


def _file_faults(module: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that handle files without neardup.files, each with the name of the rule."""
    for call in nodes_of(MODULES[module], ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in (
            "read_text",
            "write_text",
            "splitlines",
        ):
            yield call.lineno, call.func.attr
        if (
            isinstance(call.func, ast.Attribute)
            and call.func.attr == "OSFile"
            and module != "arrays"
        ):
            yield call.lineno, "OSFile"
        name = ast.unparse(call.func)
        if name in OPENED_BY_ARROW and not {ast.unparse(value) for value in call.args} & {
            "file",
            "handle",
            "stream",
        }:
            yield call.lineno, "a path for Arrow"
    for handler in nodes_of(MODULES[module], ast.ExceptHandler):
        caught = ast.unparse(handler.type) if handler.type else "OSError"
        body = handler.body[0]
        if (
            "OSError" in caught
            and len(handler.body) == 1
            and isinstance(body, ast.Pass | ast.Continue)
        ):
            yield handler.lineno, f"except OSError: {type(body).__name__.lower()}"


OPENED_BY_ARROW = {
    *(
        "pq.ParquetFile",
        "pq.ParquetWriter",
        "pq.read_table",
        "pq.read_schema",
        "pq.read_metadata",
        "pq.write_table",
    ),
    *(
        "pa.memory_map",
        "pa_csv.open_csv",
        "pa_csv.read_csv",
        "pa_csv.CSVWriter",
        "pc_csv.CSVWriter",
        "feather.write",
    ),
}
"""Functions of Arrow to which a path as text may be an address; an open file, named file, handle or
stream, is not.
"""


@for_every([module for module in MODULES if module != "files"])
def test_files_are_read_and_written_by_one_module(module):
    faults = [
        (line, rule) for line, rule in _file_faults(module) if (module, rule) not in FILE_EXCEPTIONS
    ]
    assert not faults, (
        f"{MODULES[module]}: use neardup.files, and arrays.arrow_file for Arrow: {faults}"
    )


def test_no_module_is_named_after_nothing():
    assert not {Path(module).name for module in MODULES} & {
        "utils",
        "util",
        "common",
        "helpers",
        "core",
        "misc",
    }


@for_every(MODULES)
def test_every_module_says_what_it_is_for(module):
    assert MODULES[module].name == "version.py" or ast.get_docstring(tree_of(MODULES[module]))


def test_the_public_names_are_one_list():
    from neardup import _HOMES

    homes = [name for names in _HOMES.values() for name in names.split()]
    assert sorted([*homes, "__version__"]) == sorted(neardup.__all__) == sorted(dir(neardup))
    assert len(set(homes)) == len(homes)


def test_the_names_shown_to_type_checkers_are_the_public_ones():
    block = next(node for node in tree_of(MODULES["__init__"]).body if isinstance(node, ast.If))
    shown = {
        alias.name
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    modules = {"errors", "lsh", "methods"}
    assert shown - modules | {"__version__"} == set(neardup.__all__)


@pytest.mark.parametrize("name", neardup.__all__)
def test_every_public_name_loads_and_has_a_docstring_of_its_own(name):
    value = getattr(neardup, name)
    if name == "__version__":
        assert re.fullmatch(r"\d+\.\d+\.\d+\S*", value)
        return
    assert value.__name__ == name
    text = value.__dict__.get("__doc__") if isinstance(value, type) else value.__doc__
    assert text
    assert not text.startswith(f"{name}(")  # what NamedTuple and dataclass write of themselves


@pytest.mark.parametrize("name", neardup.lsh.__all__)
def test_every_name_of_the_submodule_has_a_docstring_and_is_in_no_other_place(name):
    value = getattr(neardup.lsh, name)
    assert value.__doc__
    assert not value.__doc__.startswith(f"{name}(")
    assert name not in neardup.__all__


def test_no_more_than_forty_three_names_are_at_the_top():
    assert len(neardup.__all__) <= 43


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'neardup' has no attribute 'nothing'"):
        _ = neardup.nothing


def documented_parameters(docstring: str) -> list[str] | None:
    """Return the names in the section Parameters, or None if there is no such section."""
    lines = inspect.cleandoc(docstring).splitlines()
    try:
        start = (
            next(
                i
                for i, line in enumerate(lines)
                if line == "Parameters" and lines[i + 1].startswith("---")
            )
            + 2
        )
    except StopIteration:
        return None
    names: list[str] = []
    for place, line in enumerate(lines[start:], start):
        if place + 1 < len(lines) and lines[place + 1].startswith("---"):
            break
        match = re.match(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*) :", line)
        if match:
            names += [name.lstrip("*") for name in match[1].split(", ")]
    return names


DECLARED = (
    TextOptions,
    ReadingOptions,
    BatchOptions,
    FolderOptions,
    CacheOptions,
    CountOptions,
    CorpusOptions,
    PairOptions,
    SelectionOptions,
    SketchOptions,
    LineOptions,
    AddOptions,
)
OPTIONS = {kind.__name__: kind for kind in DECLARED}


def parameters_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    arguments = function.args
    named = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    decorators = map(ast.unparse, function.decorator_list)
    spelled = [
        re.fullmatch(r"spelled_out\((\w+)(, is_reported=True)?\)", decorator)
        for decorator in decorators
    ]
    options = [name for match in spelled if match for name in OPTIONS[match[1]].__annotations__]
    return [
        *(one.arg for one in named if one is not None and one.arg not in ("self", "cls")),
        *options,
    ]


@for_every(MODULES)
def test_every_documented_parameter_is_one_of_the_signature(module):
    for function in functions_of(module):
        documented = documented_parameters(ast.get_docstring(function) or "")
        place = f"{MODULES[module]}:{function.lineno} {function.name}"
        assert documented is None or documented, place
        assert set(documented or ()) <= set(parameters_of(function)), place


FUNCTIONS = {name: getattr(neardup, name) for name in neardup.__all__}
FUNCTIONS |= {f"lsh.{name}": getattr(neardup.lsh, name) for name in neardup.lsh.__all__}
FUNCTIONS = {name: function for name, function in FUNCTIONS.items() if inspect.isfunction(function)}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_every_public_function_documents_its_parameters(function):
    assert sorted(documented_parameters(function.__doc__) or []) == sorted(
        inspect.signature(function).parameters
    )


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_every_public_function_is_fully_typed(function):
    signature = inspect.signature(function)
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty


def loaded_after(code: str) -> set[str]:
    """Return the top-level modules that a fresh process has loaded after some code."""
    report = (
        "import json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in "
        "sys.modules})))"
    )
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {str(SOURCE.parent)!r}); {code}; {report}",
    ]
    return set(
        json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    )


@pytest.mark.parametrize(
    "code", ["import neardup", "import neardup; neardup.MinHash(threshold=0.7); dir(neardup)"]
)
def test_importing_neardup_loads_nothing_heavy(code):
    heavy = {
        "numba",
        "llvmlite",
        "numpy",
        "pyarrow",
        "pandas",
        "rich",
        "click",
        "pyspark",
        "fsspec",
        "resiliparse",
    }
    assert not loaded_after(code) & heavy


def test_naming_the_functions_compiles_nothing():
    assert not loaded_after("import neardup; neardup.dedup; neardup.plan; neardup.lsh.Bands") & {
        "numba",
        "llvmlite",
    }


@pytest.mark.slow
def test_a_run_over_files_does_not_load_pandas(tmp_path):
    source = tmp_path / "in"
    out = tmp_path / "out"
    source.mkdir()
    texts = [f"cafe\u0301 number {i // 2} of the street" for i in range(20)]
    pq.write_table(
        pa.table({"id": list(map(str, range(20))), "text": texts}), source / "in.parquet"
    )
    (source / "in.txt").write_text("".join(f"{text}\n" for text in texts))
    assert "pandas" not in loaded_after(
        f"import neardup; neardup.dedup({str(source)!r}, output={str(out)!r})"
    )


@pytest.mark.slow
def test_an_index_works_without_pandas(tmp_path):
    (tmp_path / "pandas.py").write_text("raise ImportError('pandas is not installed')")
    code = (
        f"sys.path.insert(0, {str(tmp_path)!r}); import neardup; i = "
        "neardup.Index.create('memory:')"
    )
    assert "pandas" not in loaded_after(
        f"{code}; i.add('a b c'); i.add_if_new('a b c'); i.query('a b c')"
    )


# Constraints: every parameter of the settings is fed what its declaration does not accept.
SETTINGS = (Jieba, MinHash, SimHash, Vectors, SelectionSettings, RunSettings, ServiceSettings)
ALL_CONSTRAINTS = [
    (settings, name, constraint)
    for settings in SETTINGS
    for name, constraint in constraints_of(settings).items()
]
TOGETHER: dict[
    Any, dict[str, Any]
] = {  # what a value needs beside it, by parameter or by parameter and value
    "num_bands": {"rows_per_band": 1},
    "min_structure": {"html": "main"},
    (PassageSettings, "fold"): {"normalise": True, "unit": "line"},
    "decay": {"weights": "depth", "tokens": "elements"},
    ("num_blocks", 1): {"max_distance": 0},
    ("weights", "given"): {"tokens": len},
    ("weights", "depth"): {"tokens": "paths"},
    ("tokens", "elements"): {"weights": "depth"},
    ("tokens", "paths"): {"weights": "depth"},
}


def bad_values(constraint: Constraint) -> list[Any]:
    """Return values outside a constraint: beside every bound, of other types, and not finite."""
    values: list[Any] = [[], {}, b"5", object()]
    if not constraint.optional:
        values.append(None)
    if constraint.choices:
        if constraint.value_type is tuple:
            values.remove([])  # a set without members
        values += [
            "",
            "nonsense",
            constraint.choices[0].upper(),
            f" {constraint.choices[0]}",
            *constraint.prefixes,
            0,
            1.0,
            True,
        ]
        return values if constraint.or_callable else [*values, len]
    if constraint.value_type is bool:
        return [*values, 0, 1, "True", 1.0]
    if constraint.value_type is str:
        return [*values, "", 0, 1.5, True]
    if constraint.value_type is tuple:
        values.remove([])  # no words
        return [*values, "word", [1], (1,), ("",), (None,)]
    values += [True, False, "5", math.nan, math.inf, -math.inf, 1j]
    if constraint.numbers:
        return [
            *values,
            *(number + 1 for number in constraint.numbers),
            float(constraint.numbers[0]),
        ]
    if constraint.value_type is int:
        values += [1.5, 1.0]
        values += [constraint.low - 1] if constraint.low is not None else []
        values += [int(constraint.high) + 1] if constraint.high is not None else []
        return values
    values += [constraint.exclusive_min] if constraint.exclusive_min is not None else []
    values += [math.nextafter(constraint.low, -math.inf)] if constraint.low is not None else []
    values += [math.nextafter(constraint.high, math.inf)] if constraint.high is not None else []
    return values


def good_values(constraint: Constraint) -> list[Any]:
    """Return values inside the constraint, at their very edge."""
    values: list[Any] = [None] if constraint.optional else []
    if constraint.choices and constraint.value_type is tuple:
        return [*values, (), *((choice,) for choice in constraint.choices), constraint.choices]
    if constraint.choices:
        words = [
            *constraint.choices,
            *constraint.python_only,
            *(f"{prefix}x" for prefix in constraint.prefixes),
        ]
        return [*values, *words, *([len] * constraint.or_callable)]
    if constraint.value_type is bool:
        return [True, False]
    if constraint.value_type in (str, tuple):
        return (
            [*values, *constraint.sentinels, "x"]
            if constraint.value_type is str
            else [*values, (), ("n",), ("n", "v")]
        )
    if constraint.numbers:
        return list(constraint.numbers)
    edges = [
        constraint.low,
        constraint.high,
        None
        if constraint.exclusive_min is None
        else math.nextafter(constraint.exclusive_min, math.inf),
    ]
    return [*values, *(constraint.value_type(edge) for edge in edges if edge is not None)]


@for_every(
    [
        (settings, name, value)
        for settings, name, constraint in ALL_CONSTRAINTS
        for value in bad_values(constraint)
    ]
)
def test_a_value_outside_its_limits_is_refused_by_name(case):
    settings, name, value = case
    with pytest.raises(SettingError) as caught:
        settings(**{name: value})
    message = str(caught.value)
    constraint = constraints_of(settings)[name]
    assert message.startswith(f"{name} must be {constraint.describe()}: got {value!r}.")
    assert f"Change {name}." in message
    flag = constraint.flag or f"--{name.replace('_', '-')}"
    assert f"Change {name} ({flag})" in caught.value.args[0]
    assert isinstance(caught.value, (NeardupError, ValueError))
    assert "  " not in message


@for_every(ALL_CONSTRAINTS)
def test_a_value_at_the_edge_of_its_limits_is_accepted(case):
    settings, name, constraint = case
    for value in good_values(constraint):
        by_value = TOGETHER.get((name, value)) if isinstance(value, (str, int)) else None
        by_name = TOGETHER.get((settings, name)) or TOGETHER.get(name, {})
        beside = by_value or (by_name if value is not None else {})
        assert getattr(settings(**{name: value}, **beside), name) is value


@for_every(ALL_CONSTRAINTS)
def test_every_limit_says_what_it_is_in_a_sentence(case):
    settings, name, constraint = case
    assert re.fullmatch(r"[A-Z].*\.", constraint.help)
    assert constraint.accepts(settings.__dataclass_fields__[name].default)


def test_bands_need_their_rows():
    with pytest.raises(
        SettingError, match=r"num_bands requires rows_per_band: got num_bands=5, .*Give both"
    ):
        MinHash(num_bands=5)


def test_settings_cannot_be_changed_or_given_by_place():
    for settings in SETTINGS:
        name = next(iter(constraints_of(settings)))
        with pytest.raises(AttributeError):
            setattr(settings(), name, None)
        with pytest.raises(TypeError):
            settings("words")


OPTIONS_OF = {
    neardup.dedup: (
        ReadingSettings,
        SelectionSettings,
        GroupSettings,
        OutputSettings,
        RunSettings,
        EngineSettings,
        FolderSettings,
        EarlierSettings,
    ),
    neardup.cluster: (
        ReadingSettings,
        SelectionSettings,
        RunSettings,
        EngineSettings,
        FolderSettings,
        KnownSettings,
    ),
    neardup.remove_passages: (
        ReadingSettings,
        PassageOutput,
        RunSettings,
        FolderSettings,
        PassageInputs,
    ),
    neardup.find_contamination: (
        ReadingSettings,
        ItemSettings,
        ContaminationSettings,
        ContaminationOutput,
        FolderSettings,
    ),
    neardup.find_pairs: (ReadingSettings, EngineSettings, FileSettings),
    neardup.sign: (ReadingSettings, EngineSettings, FileSettings),
}


@pytest.mark.parametrize("function", OPTIONS_OF, ids=lambda function: function.__name__)
def test_a_function_takes_every_option_of_its_settings_with_its_default(function):
    parameters = inspect.signature(function).parameters
    for settings in OPTIONS_OF[function]:
        for name, field in settings.__dataclass_fields__.items():
            assert parameters[name].default == field.default
            assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY


OF_THE_COMMAND_LINE = r"--|exit|repeat|neardup "


@pytest.mark.parametrize(
    "function", [neardup.dedup, neardup.remove_passages, neardup.find_contamination]
)
def test_an_option_has_the_same_sentence_in_python_and_on_the_command_line(function):
    docstring = " ".join(inspect.getdoc(function).split())
    for settings in (
        *OPTIONS_OF[function],
        *([PassageSettings] if function is neardup.remove_passages else []),
    ):
        for name, constraint in constraints_of(settings).items():
            if settings is FolderSettings and function is not neardup.dedup:
                continue  # as in dedup
            sentence = constraint.help[0].lower() + constraint.help[1:]
            if not re.search(OF_THE_COMMAND_LINE, sentence) and settings not in (
                ReadingSettings,
                RunSettings,
            ):
                assert f"{name} : {sentence}" in docstring


@pytest.mark.parametrize(
    ("settings", "name", "value"),
    [
        (settings, name, bad_values(constraint)[-1])
        for settings, name, constraint in ALL_CONSTRAINTS
        if settings in (SelectionSettings, RunSettings)
    ],
    ids=str,
)
def test_dedup_refuses_a_bad_setting_before_it_reads_anything(settings, name, value):
    with pytest.raises(SettingError, match=f"^{name} must be"):
        neardup.dedup("no such file.parquet", **{name: value})
