"""A report is complete when it is made: only report/ makes one out of another."""

from __future__ import annotations

import ast
import re

import pytest

from reference.checks import for_every
from reference.sources import MODULES, tree_of, unit_of

MUTATING = {
    "append",
    "clear",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "setdefault",
    "update",
}
# Module, expression -> the reason why it is no edit of a report.
REPORT_EXCEPTIONS = {
    ("cli/render/index", "{**report, **rows}"): "a query prints its hits together with its report",
    (
        "cli/render/reports",
        "{**report, 'command': 'document-frequencies', 'counts': counts}",
    ): "the rows of a table of frequencies, which has no report of its own",
    (
        "cli/sweep",
        "result.report | ({} if suggestion is None else {'suggestion': suggestion.record()})",
    ): "prints the suggestion that follows from the answers of the user",
}


def _is_report(node: ast.expr) -> bool:
    """Return whether an expression is a report by its name, or a part of one."""
    if isinstance(node, ast.Subscript):
        return _is_report(node.value)
    if isinstance(node, ast.Call):
        return _is_report(node.func)
    if isinstance(node, ast.Attribute) and node.attr == "to_dict":
        return _is_report(node.value)
    name = getattr(node, "id", getattr(node, "attr", ""))
    return bool(re.search(r"(^|_)(report|summary)(_|$)", name))


def _edited(node: ast.AST) -> list[ast.expr]:
    """Return the expressions that a statement or an expression changes, or merges into another."""
    if isinstance(node, ast.Assign):
        return [target for target in node.targets if isinstance(target, ast.Subscript)]
    if isinstance(node, ast.Delete):
        return [target for target in node.targets if isinstance(target, ast.Subscript)]
    if isinstance(node, ast.AugAssign):
        return [node.target]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [side for side in (node.left, node.right) if not isinstance(side, ast.Subscript)]
    if isinstance(node, ast.Dict):
        return [value for key, value in zip(node.keys, node.values, strict=True) if key is None]
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in MUTATING
    ):
        return [node.func.value]
    if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("dict", "replace"):
        return [
            *node.args[:1],
            *(keyword.value for keyword in node.keywords if keyword.arg is None),
        ]
    return []


def edits_of_reports(tree: ast.AST) -> list[tuple[int, str]]:
    """Return the lines that change or merge a report, each with its source."""
    found = [(node, edited) for node in ast.walk(tree) for edited in _edited(node)]
    return [(node.lineno, ast.unparse(node)) for node, edited in found if _is_report(edited)]


@for_every([module for module in MODULES if unit_of(module) != "report"])
def test_a_report_is_made_once_and_edited_by_nobody(module):
    edits = [
        edit
        for edit in edits_of_reports(tree_of(MODULES[module]))
        if (module, edit[1]) not in REPORT_EXCEPTIONS
    ]
    assert not edits, (
        f"{MODULES[module]}: pass the values to the function in report/ that makes the record: "
        f"{edits}"
    )


@pytest.mark.parametrize(
    "edit",
    [
        "report['updated'] = True",
        "result.report['counts']['kept'] -= 1",
        "report |= {'write': wanted}",
        "made = build_report(run) | {'write': wanted}",
        "made = {**report, 'lang': lang}",
        "made = dict(report, lang=lang)",
        "made = replace(report, lang=lang)",
        "made = dataclasses.replace(dedup_report(found), lang=lang)",
        "made = report.to_dict() | facts",
        "del report['recall']",
        "report['warnings'].append(warning)",
        "summary.update(truth=truth)",
    ],
)
def test_the_guard_sees_each_way_to_edit_a_report(edit):
    assert edits_of_reports(ast.parse(edit))


@pytest.mark.parametrize(
    "reading",
    [
        "report = dedup_report(found, write=wanted)",
        "kept = report['counts']['kept']",
        "counts = {key: 0 for key in names} | (report.get('counts') or {})",
        "settings = report['settings'] | report['scheme']",
        "self.report: PassagesReport | None = None",
        "writing.write_report(report.to_dict(), page, folder)",
    ],
)
def test_the_guard_lets_reports_be_made_and_read(reading):
    assert not edits_of_reports(ast.parse(reading))
