"""The facts of a report as rows: the terminal, the pages and notebooks print the same ones.

A row is plain text, which its printer escapes. Any part of a report may be absent or null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from neardup.files import JsonObject
from neardup.fingerprints.hyperplanes import SCHEME_NAME
from neardup.report.wording import duration, memory, percent, say, what_copies_share

ReportValues = Mapping[str, Any]  # or a part of one

_MAX_STAGES = 4  # shown beside the time of a run, the longest
_MIN_STAGE = 0.05  # seconds
_MIN_COMPILING = 0.5  # seconds
_MAX_SOURCES = 5  # shown, with the most removals


class Row(NamedTuple):
    """A fact of a report.

    share : of the documents read. remark : the meaning of the value. kind : found, kept, removed,
    near, exact or lost, for its colour. depth : 1 for a part of the row above. is_detail : shown
    on the page only.
    """

    label: str
    value: str
    share: str = ""
    remark: str = ""
    kind: str = ""
    depth: int = 0
    is_detail: bool = False

    @property
    def explanation(self) -> str:
        """The share and the remark."""
        return say("words.comma").join(filter(None, (self.share, self.remark)))


class Table(NamedTuple):
    """Titles of columns, and rows of a name and figures."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]


class _Look(NamedTuple):
    """The presentation of a count.

    kind, depth, is_detail : as of a Row. whole : the count that its share is taken of. is_rare :
    left out if it is 0.
    """

    kind: str = ""
    depth: int = 0
    whole: str = ""
    is_detail: bool = False
    is_rare: bool = False


_RESULTS = {
    "dedup": (
        "read",
        "kept",
        "in_several",
        "removed",
        "removed_exact",
        "removed_near",
        "removed_with_group",
    ),
    "cluster": ("read", "clusters", "clustered", "largest", "known", "single"),
    "find-pairs": ("read", "fingerprints", "pairs", "pairs_exact", "pairs_near"),
    "sign": ("read", "signed"),
    "contamination": ("items", "read", "contaminated", "boilerplate", "short", "clean"),
    "passages": ("read",),
    "document-frequencies": ("documents", "features", "max_undercount"),
    "index add": ("read", "added", "repeated"),
}
"""The counts of each command; other commands, of an index, have _INDEX_RESULTS."""
_INDEX_RESULTS = ("read", "kept", "removed", "removed_exact", "repeated")
_PASSAGES = ("passages", "changed", "dropped")
_LOSSES = ("unreadable", "excluded", "incomplete")
_SPECIAL = ("without_features", "undated", "against", "truncated")
_SEARCH = ("compared", "confirmed", "distinct", "collisions", "bucket_overflows")
_LOOKS = {
    "kept": _Look("kept", whole="read"),
    "in_several": _Look("found", depth=1, whole="kept"),
    "removed": _Look("removed", whole="read"),
    "removed_exact": _Look("exact", depth=1, whole="read"),
    "removed_near": _Look("near", depth=1, whole="read"),
    "removed_with_group": _Look(whole="read"),
    "clusters": _Look("found"),
    "clustered": _Look("kept", depth=1, whole="read"),
    "known": _Look(depth=2, whole="read"),
    "single": _Look("exact", depth=1, whole="read"),
    "largest": _Look(depth=2, is_detail=True),
    "pairs": _Look("found"),
    "pairs_exact": _Look(depth=1),
    "pairs_near": _Look(depth=1),
    "signed": _Look("found"),
    "contaminated": _Look("lost", whole="items"),
    "clean": _Look("found"),
    "features": _Look("found"),
    "max_undercount": _Look(is_rare=True),
    "added": _Look("found"),
    "repeated": _Look(is_rare=True),
    "passages": _Look("removed"),
    "dropped": _Look(is_rare=True),
    "unreadable": _Look("lost", is_rare=True),
    "excluded": _Look(is_rare=True),
    "incomplete": _Look("lost", is_rare=True),
    "without_features": _Look(is_rare=True),
    "undated": _Look(is_rare=True),
    "against": _Look(is_rare=True),
    "truncated": _Look(is_rare=True),
    "confirmed": _Look(is_detail=True),
    "distinct": _Look(is_detail=True),
    "bucket_overflows": _Look(is_detail=True),
}


def part_of(report: ReportValues, name: str) -> ReportValues:
    """Return a part of a report; empty if it is absent or null."""
    return report.get(name) or {}


def command_of(report: ReportValues) -> str:
    """Return the command of a report, or the one that has its counts."""
    return report.get("command") or (
        "cluster" if "clusters" in part_of(report, "counts") else "dedup"
    )


def headline(report: ReportValues) -> str:
    """Return the result of a run as one sentence, with the inputs that could not be read."""
    facts = _facts(report)
    command = "fingerprints" if "fingerprints" in facts else command_of(report)
    read = {"contamination": "items", "fingerprints": "fingerprints"}.get(command, "read")
    found = {"dedup": "removed", "cluster": "clusters"}.get(command, read)
    result = command if facts.get(found) else f"{command}_none"
    if not facts.get(read):
        result = f"no_{read}"
    sentence = say(f"headline.{result}", **facts)
    for loss in ("rejected", "incomplete"):
        if facts[loss]:
            sentence += say(f"headline.{loss}", **facts)
    return sentence


def result_rows(report: ReportValues) -> list[Row]:
    """Return the counts of documents, items or pairs: read, found, left out."""
    results = _RESULTS.get(command_of(report), _INDEX_RESULTS)
    counts = _count_rows(report, (*results, *_PASSAGES, *_LOSSES, *_SPECIAL))
    return [*counts, *_rule_rows(report)]


def _rule_rows(report: ReportValues) -> Iterator[Row]:
    """Yield the facts that a registered rule gives under its name, in its own words."""
    linkage = part_of(report, "settings").get("linkage") or ""
    for name, value in part_of(report, linkage).items():
        # True is an int, too, and would be 1.
        shown = f"{value:,}" if type(value) is int else str(value)
        yield Row(name.replace("_", " ").capitalize(), shown)


def loss_rows(report: ReportValues) -> list[Row]:
    """Return the counts of rows and files that were not read."""
    return list(_count_rows(report, _LOSSES))


def removal_rows(report: ReportValues) -> list[Row]:
    """Return the inputs, or values of a column, that lost the most documents."""
    if command_of(report) != "dedup":
        return []
    losses = [(name, row) for name, row in _sources(report) if row.get("removed")]
    # Stable: equal numbers stay in the order of the inputs.
    losses.sort(key=lambda loss: -loss[1]["removed"])
    rows: list[Row] = []
    for name, row in losses[:_MAX_SOURCES]:
        share = percent(row["removed"] / row["documents"])
        remark = say("remarks.of_source", share=share, documents=row["documents"], name=name)
        rows.append(
            Row("" if rows else say("counts.by_source"), f"{row['removed']:,}", remark=remark)
        )
    return rows


def _sources(report: ReportValues) -> list[tuple[str, ReportValues]]:
    """Return the values of a column, or several inputs of more than one document, by name."""
    by_value = part_of(report, "by_value")
    if by_value:
        return [(f"{by_value['column']}={row['value'] or ''}", row) for row in by_value["values"]]
    inputs = [row for row in report.get("inputs") or () if row.get("role") == "source"]
    # A file of one document is no source to compare.
    return [(row["name"], row) for row in inputs if row["documents"] > 1 and len(inputs) > 1]


def search_rows(report: ReportValues) -> list[Row]:
    """Return the recall of a run, estimated and measured, and the counts of its search."""
    facts = _facts(report)
    rows = [_recall(report, facts)] if "recall" in report else []
    sample = report.get("recall_sample")
    if sample:
        measured = sample.get("recall") is not None
        hidden = say("remarks.hidden") if facts["bucket_overflows"] else ""
        key = "measured" if measured else "no_duplicate"
        remark = say(f"recall.{key}", **sample, interval=_interval(sample), hidden=hidden)
        rows.append(
            Row(
                say("counts.recall_sample"),
                percent(sample["recall"]) if measured else "-",
                remark=remark,
            )
        )
    return [*rows, *_count_rows(report, _SEARCH)]


def _recall(report: ReportValues, facts: ReportValues) -> Row:
    estimate = part_of(report, "recall")
    value = "-"
    reason = "no_near_duplicate"
    if estimate:
        value = percent(estimate["estimated"])
        reason = "estimated"
    elif facts["bucket_overflows"]:
        reason = "not_known"
    elif report.get("fingerprints"):
        value = "100 %"
        reason = "none_missed"
    elif "updated" in report or facts.get("removed_near"):
        reason = "on_index"
    return Row(
        say("counts.recall"),
        value,
        remark=say(f"recall.{reason}", **facts, interval=_interval(estimate)),
    )


def _interval(values: ReportValues) -> str:
    if values.get("low") is None or values.get("high") is None:
        return ""
    return f"{percent(values['low'])} {say('words.to')} {percent(values['high'])}"


def cost_rows(report: ReportValues) -> list[Row]:
    """Return the time and memory of a run."""
    rows = []
    if report.get("seconds") is not None:
        rows.append(
            Row(say("counts.seconds"), duration(report["seconds"]), remark=_longest_stages(report))
        )
    compiling = report.get("compile_seconds") or 0
    if compiling >= _MIN_COMPILING:
        rows.append(
            Row(say("counts.compiling"), duration(round(compiling, 1)), remark=say("remarks.once"))
        )
    if report.get("fingerprints_per_second") is not None:
        rate = f"{report['fingerprints_per_second']:,}"
        rows.append(Row(say("counts.speed"), rate, remark=say("remarks.fingerprint_rate")))
    if report.get("megabytes_per_second") is not None:
        megabytes = report["megabytes_per_second"]
        rate = f"{megabytes:,.0f} MB/s" if megabytes >= 10 else f"{megabytes:.1f} MB/s"
        documents = say("remarks.document_rate", documents=report.get("documents_per_second") or 0)
        rows.append(Row(say("counts.speed"), rate, remark=documents))
    if report.get("peak_memory_bytes") is not None:
        rows.append(Row(say("counts.peak_memory"), memory(report["peak_memory_bytes"])))
    return rows


def _longest_stages(report: ReportValues) -> str:
    timings = report.get("timings") or ()
    longest = sorted(timings, key=lambda timing: -timing["seconds"])[:_MAX_STAGES]
    shown = [
        (str(timing["stage"]), duration(round(timing["seconds"], 1)))
        for timing in timings
        # In the order of the run, not of length.
        if timing in longest and timing["seconds"] >= _MIN_STAGE
    ]
    return say("words.comma").join(
        f"{say(f'stages.{stage}', stage)} {time}" for stage, time in shown
    )


def benchmark_table(report: ReportValues) -> Table:
    """Return the counts of the items of each benchmark, the most contaminated first."""
    # The share comes early: a narrow screen shows the first columns.
    first = ("items", "contaminated")
    last = ("boilerplate", "short", "clean")
    titles = [
        say("contamination.benchmark"),
        *(say(f"counts.{name}").lower() for name in first),
        say("words.share"),
        *(say(f"counts.{name}").lower() for name in last),
    ]
    rows = [
        (
            row["benchmark"],
            *(f"{row[name]:,}" for name in first),
            percent(row["rate"]),
            *(f"{row[name]:,}" for name in last),
        )
        for row in report["benchmarks"]
    ]
    return Table(titles, rows)


def scores(score: ReportValues) -> list[str]:
    """Return precision, recall and F1 of an evaluation as percentages; a dash for None."""
    return [
        "-" if score[name] is None else percent(score[name])
        for name in ("precision", "recall", "f1")
    ]


def is_confirmed(report: ReportValues) -> bool:
    """Return whether the features of pairs of near fingerprints were compared."""
    return part_of(report, "settings").get("confirm") == "jaccard"


def are_vectors(report: ReportValues) -> bool:
    """Return whether the documents are vectors."""
    return part_of(report, "scheme").get("name") == SCHEME_NAME


def limits_of(report: ReportValues) -> str:
    """Return the limits that two near-duplicates reach: "jaccard 0.8 or more"."""
    settings = part_of(report, "settings")
    limits = {
        settings.get("similarity", "similarity"): settings.get("threshold"),
        "structure": settings.get("min_structure"),
    }
    parts = []
    near = report.get("fingerprints")
    if near:
        # The settings have the limit of a later answer; `near` has the limit of the search.
        distance = settings.get("max_distance", near["max_distance"])
        parts = [say("remarks.near", **{**near, "max_distance": distance})]
        limits = {"jaccard": settings.get("threshold")} if is_confirmed(report) else {}
    for name, limit in limits.items():
        if limit is not None:
            least = f"{limit:g}" if isinstance(limit, float) else limit
            parts.append(say("remarks.or_more", measure=say(f"limits.{name}", name), least=least))
    return say("words.comma").join(parts)


def _count_rows(report: ReportValues, keys: Sequence[str]) -> Iterator[Row]:
    facts = _facts(report)
    for key in keys:
        look = _LOOKS.get(key, _Look())
        count = facts.get(key)
        if count is None or (look.is_rare and not count):
            continue
        yield Row(
            label=say(f"counts.{key}"),
            value=f"{count:,}",
            share=percent(count / facts[look.whole]) if facts.get(look.whole) else "",
            remark=say(f"remarks.{key}", "", **facts),
            kind=look.kind,
            depth=look.depth,
            is_detail=look.is_detail,
        )


def _facts(report: ReportValues) -> JsonObject:
    """Return the counts of a report by name, and the words that its sentences are filled in
    with.
    """
    # Counts of the run replace equal names of its passages.
    counts = {**part_of(part_of(report, "passages"), "counts"), **part_of(report, "counts")}
    groups = {f"group_{name}": value for name, value in part_of(report, "groups").items()}
    unreadable = part_of(report, "unreadable").get("rows", 0)
    rejected = counts.get("rejected", 0) + counts.get("items_rejected", 0)
    near = part_of(report, "fingerprints")
    bound = part_of(report, "bound")
    pairs = counts.get("confirmed")
    copies = counts.get("confirmed_exact")
    return {
        **counts,
        **groups,
        **part_of(report, "provenance"),
        **near,
        "rejected": rejected,
        "unreadable": unreadable,
        "excluded": rejected - unreadable,
        **_unread_files(report),
        "benchmarks": len(report.get("benchmarks") or ()),
        "added": counts.get("kept", 0) - counts.get("repeated", 0),
        "pairs": pairs,
        "pairs_exact": copies,
        "pairs_near": None if pairs is None or copies is None else pairs - copies,
        "collisions": near.get("collisions") if is_confirmed(report) else None,
        "bucket_overflows": bound.get("documents"),
        "max_bucket_size": bound.get("max_bucket_size"),
        **_words(report, counts),
    }


def _words(report: ReportValues, counts: ReportValues) -> dict[str, str]:
    """Return the words of a report that sentences about its counts are filled in with."""
    settings = part_of(report, "settings")
    scheme = part_of(report, "scheme")
    each = "hashes" if scheme.get("bits") is None else "bits"
    is_of_fingerprints = "fingerprints" in counts
    fate = "fingerprints" if is_of_fingerprints else command_of(report)
    if report.get("groups"):
        fate = "groups"
    return {
        **_sizes(report),
        "copies": what_copies_share({**scheme, **settings}, scheme.get("tokens")) if scheme else "",
        "limits": limits_of(report),
        "fate": say(f"without_features.{fate}", ""),
        "each": say(
            f"remarks.{each}", num_hashes=scheme.get("num_hashes"), bits=scheme.get("bits")
        ),
        "exactness": say("remarks.all_pairs", **settings)
        if is_of_fingerprints
        else say("remarks.exactly"),
        "and_dropped": say("headline.and_dropped", **counts) if counts.get("dropped") else "",
        "share": percent(counts.get("characters", 0) / (counts.get("characters_read") or 1)),
    }


def _unread_files(report: ReportValues) -> JsonObject:
    """Return the number of files that were not read to their end, and the first three names."""
    incomplete = part_of(report, "incomplete")
    names = incomplete.get("names", ())
    shown = [*names[:3], *["…"] * (len(names) > 3)]
    return {"incomplete": incomplete.get("files", 0), "unread": say("words.list").join(shown)}


def _sizes(report: ReportValues) -> dict[str, str]:
    """Return the sizes of the documents read, removed and of the earlier collection; empty for an
    unknown one.
    """
    kind = say("words.vectors" if are_vectors(report) else "words.text")
    read_bytes = report.get("bytes") or 0
    source_bytes = report.get("source_bytes")
    if source_bytes is None:
        source_bytes = read_bytes
    removed_bytes = report.get("removed_bytes")
    earlier_bytes = read_bytes - source_bytes
    return {
        "source_size": say("remarks.size", size=memory(source_bytes), kind=kind),
        "removed_size": say("remarks.size", size=memory(removed_bytes), kind=kind)
        if removed_bytes
        else "",
        "and_earlier_size": say("remarks.and_size", size=memory(earlier_bytes), kind=kind)
        if earlier_bytes
        else "",
    }
