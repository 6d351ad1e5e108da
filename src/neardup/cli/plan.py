"""The command `neardup plan`."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, ClassVar

import click

from neardup.cli.settings import Command, SettingType, option, parse_number, settings_options
from neardup.errors import SettingError
from neardup.settings.constraints import Constraint, constraints_of
from neardup.settings.methods import MinHash, SimHash
from neardup.settings.presets import METHODS

if TYPE_CHECKING:
    from neardup.candidates.plan import Plan

_BANDS = ("threshold", "recall", "num_bands", "rows_per_band")
_BLOCKS = ("bits", "max_distance")
_OF_DOCUMENTS, _OF_FINGERPRINTS = (*_BANDS, "document_bytes", "plot", "engine"), (*_BLOCKS, "memory")
_OF_INDEX = ("method", "storage", "document_features")
_COUNT = SettingType(Constraint("A count.", low=1, high=1e15))


class _Power(SettingType):
    """A count that may be written as a power: 2^34."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the count; fail with what is accepted."""
        base, hat, exponent = str(value).partition("^")
        if hat and base.isdecimal() and exponent.isdecimal() and len(base) < 5 and int(exponent) <= 64:
            value = str(int(base) ** int(exponent))
        return super().convert(value, param, ctx)


class _Memory(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """An amount of memory: 4GB, 512MiB, 2e9."""

    name = "memory"
    _UNITS: ClassVar = {
        "": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30,
        "tib": 2**40,
    }  # fmt: skip

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number of bytes; fail with what is accepted."""
        digits = str(value).rstrip("kKmMgGtTiIbB ")
        number, unit = parse_number(digits, whole=False), str(value)[len(digits) :].strip().lower()
        if number is None or unit not in self._UNITS or not 0 < number < 1e15:
            self.fail(f"must be an amount of memory such as 4GB or 512MiB: got {value!r}.", param, ctx)
        return number * self._UNITS[unit]


@click.command(cls=Command, short_help="Estimate the memory, disk and work of a run.")
@option(
    "--documents", type=_COUNT, metavar="N", section="Corpus",
    help="The number of documents of a run with MinHash, such as 1e8 or 100_000_000.",
)  # fmt: skip
@option(
    "--document-bytes", type=_COUNT, metavar="N", default=4000, show_default=True, section="Corpus",
    help="The average size of a text, in bytes of UTF-8.",
)  # fmt: skip
@option(
    "--fingerprints", type=_Power(Constraint("A count.", int, low=1, high=10**15)), metavar="N",
    section="Corpus", help="The number of fingerprints of an index, such as 1e9 or 2^34.",
)  # fmt: skip
@option(
    "--index", "of_index", is_flag=True, section="Index (with --documents)",
    help="Estimate the size of an index in a folder, for each storage level.",
)  # fmt: skip
@option(
    "--method", type=click.Choice(list(METHODS)), default="minhash", show_default=True,
    section="Index (with --documents)", help="The method of the index; its limits are the options below.",
)  # fmt: skip
@option(
    "--storage", type=click.Choice(["fingerprints", "features", "text"]), section="Index (with --documents)",
    help="One storage level. Default: all levels of the method.",
)  # fmt: skip
@option(
    "--document-features", type=_COUNT, metavar="N", section="Index (with --documents)",
    help="The average number of distinct features of a text. Default: the average of English texts.",
)  # fmt: skip
@settings_options(MinHash, "MinHash (with --documents)", only=_BANDS)
@settings_options(SimHash, "Fingerprints (with --fingerprints)", only=_BLOCKS)
@option(
    "--memory", type=_Memory(), metavar="SIZE", section="Fingerprints (with --fingerprints)",
    help="The maximum memory of the index, such as 16GB. Default: no limit.",
)  # fmt: skip
@option(
    "--plot", metavar="FILE", section="Printing",
    help="Plot the S-curve to this SVG file (with --documents).",
)  # fmt: skip
@option(
    "--engine", type=click.Choice(["local", "spark"]), default="local", show_default=True,
    section="MinHash (with --documents)", help="Estimate a run on this machine, or on Spark.",
)  # fmt: skip
@option("--json", "as_json", is_flag=True, section="Printing", help="Print one JSON object.")
def plan(
    documents: float | None,
    document_bytes: float,
    fingerprints: int | None,
    memory: float | None,
    plot: str | None,
    of_index: bool,
    engine: str,
    as_json: bool,
    **values: Any,
) -> None:
    """Estimate the bands, memory, disk space, candidate pairs and S-curve of a run; or, for an index of fingerprints,
    the tables, bytes and comparisons for each number of blocks.

    \b
    Examples:
      neardup plan --documents 1e8 --threshold 0.8 --recall 0.99
      neardup plan --documents 5e6 --num-bands 20 --rows-per-band 5 --plot curve.svg
      neardup plan --documents 1e9 --engine spark
      neardup plan --fingerprints 2^34 --max-distance 3
      neardup plan --fingerprints 1e9 --max-distance 4 --memory 64GB
      neardup plan --index --documents 1e8 --method simhash --storage features
    """
    if of_index:
        _plan_index(documents, document_bytes, as_json, values)
        return
    if (documents is None) == (fingerprints is None):
        raise SettingError("plan needs either --documents or --fingerprints. Add --documents 1e8, for example.")
    _refuse_options_of_the_other(("--documents", "--fingerprints")[documents is None])
    from neardup.cli.render import plan as rendering
    from neardup.cli.render import reports

    if fingerprints is not None:
        from neardup import lsh

        bits, distance = values["bits"], values["max_distance"]
        plans = lsh.plan_blocks(fingerprints, bits, distance, memory)
        if not any(plan.picked for plan in plans):
            lsh.choose_blocks(fingerprints, bits, distance, memory)  # raises, and names what would fit
        if as_json:
            reports.print_json({"bits": bits, "max_distance": distance, "plans": [asdict(plan) for plan in plans]})
        else:
            rendering.print_blocks(plans, bits, distance, memory)
        return
    import neardup

    method = MinHash(**{name: values[name] for name in _BANDS})
    if engine == "spark":
        _refuse(("plot",), "--engine spark")
        cluster = neardup.lsh.plan_cluster(documents=documents or 0, document_bytes=document_bytes, method=method)
        if as_json:
            reports.print_json({**asdict(cluster), "shuffle_bytes": cluster.shuffle_bytes, **cluster.bands._asdict()})
        else:
            rendering.print_cluster(cluster)
        return
    estimate = neardup.plan(documents=documents or 0, document_bytes=document_bytes, method=method, plot=plot)
    if as_json:
        reports.print_json(_record(estimate))
    else:
        rendering.print_plan(estimate)


def _plan_index(documents: float | None, document_bytes: float, as_json: bool, values: dict[str, Any]) -> None:
    """Print the estimate of an index."""
    if documents is None:
        raise SettingError("plan --index needs --documents. Add --documents 1e8, for example.")
    _refuse(("fingerprints", "memory", "plot"), "--index")
    from neardup import lsh
    from neardup.cli.render import plan as rendering
    from neardup.cli.render import reports

    start = METHODS[values["method"]]
    given = {name: values[name] for name in (*_BANDS, *_BLOCKS) if _is_given(name)}
    for name in given:
        if name not in constraints_of(type(start)):
            raise SettingError(
                f"--{name.replace('_', '-')} does not apply to --method {values['method']}: got both. Leave it out."
            )
    plans = lsh.plan_index(
        documents=documents, method=replace(start, **given), storage=values["storage"], document_bytes=document_bytes,
        document_features=values["document_features"],
    )  # fmt: skip
    if as_json:
        sums = ({"document_bytes": plan.document_bytes, "disk_bytes": plan.disk_bytes} for plan in plans)
        reports.print_json({"plans": [asdict(plan) | total for plan, total in zip(plans, sums, strict=True)]})
    else:
        rendering.print_index(plans)


def _refuse_options_of_the_other(chosen: str) -> None:
    """Raise SettingError if an option was given that has no effect beside --documents or --fingerprints."""
    other, unused = ("--fingerprints", _OF_FINGERPRINTS) if chosen == "--documents" else ("--documents", _OF_DOCUMENTS)
    _refuse(unused, chosen, f"requires {other}")
    _refuse(_OF_INDEX, chosen, "requires --index")


def _refuse(names: tuple[str, ...], chosen: str, reason: str = "has no effect there") -> None:
    for name in names:
        if _is_given(name):
            raise SettingError(f"--{name.replace('_', '-')} {reason}: got it with {chosen}. Leave it out.")


def _is_given(name: str) -> bool:
    context = click.get_current_context()
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _record(plan: Plan) -> dict[str, Any]:
    figures = {name: value for name, value in vars(plan).items() if not isinstance(value, tuple)}
    return {**figures, **plan.bands._asdict(), "curve": [[s, p] for s, p in plan.curve if math.isfinite(p)]}
