"""The rules by the names of the options that choose them."""

from __future__ import annotations

from neardup.decide.chains import Chains
from neardup.decide.copies import Copies
from neardup.decide.groups import ByGroup
from neardup.decide.rule import Decision, Found, Rule
from neardup.decide.sieve import Sieve, decision_of_sieve
from neardup.settings.run import LINKAGES, GroupSettings, SelectionSettings

RULES: dict[str, type[Rule]] = {"sieve": Sieve, "connected": Chains}
"""The rules that decide which documents are a cluster, by the value of `linkage`."""


class Every(Rule):
    """List every pair, and remove nothing."""

    pairs = "all"

    def decide(self, found: Found) -> Decision:
        """List the pairs."""
        return decision_of_sieve(found, found.confirmed, found.confirmed.left_out)


def register(linkage: str, rule: type[Rule]) -> None:
    """Add a rule, which `linkage` then takes by its name, also on the command line."""
    RULES[linkage] = rule
    if linkage not in LINKAGES:
        LINKAGES.append(linkage)


def table_names() -> list[str]:
    """Return the names of the tables of all rules."""
    rules: list[type[Rule]] = [ByGroup, *RULES.values()]
    return [name for rule in rules for name in rule.tables]


def rule_of(
    selection: SelectionSettings, groups: GroupSettings | None = None, *, keeps_pairs: bool = False
) -> Rule:
    """Return the rule that settings name: of clusters, then of the copies that stay; or of groups.

    keeps_pairs : also measure the pairs of removed documents, to decide again at stricter limits.
    """
    if groups is not None and groups.group_by is not None:
        return ByGroup(groups.group_by, groups.group_share)
    rule = Sieve(keeps_pairs=True) if keeps_pairs else RULES[selection.linkage]()
    return rule if selection.copies == 1 else Copies(rule, selection.copies)
