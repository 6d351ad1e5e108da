"""The capabilities of each engine, and their checks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from neardup.errors import SettingError

COMMANDS = (
    "dedup",
    "cluster",
    "find_pairs",
    "sign",
    "evaluate",
    "sweep",
    "document_frequencies",
    "find_contamination",
    "remove_passages",
)
"""The functions that run over a collection, and the commands of the same names."""


class Limit(NamedTuple):
    """An option whose values an engine limits.

    reason : the reason, as a clause. applies : whether the option means something to the engine; if
    not, the error says that it is not applicable.
    """

    option: str
    accepted: tuple[object, ...]
    reason: str
    applies: bool = True

    def takes(self, value: object) -> bool:
        """Return whether the engine takes a value, such as several keys joined by commas; `COLUMN`
        stands for any column.
        """
        words = {re.sub(":.*", ":COLUMN", word) for word in str(value).split(",")}
        return value in self.accepted or words <= {*self.accepted}


class Capabilities(NamedTuple):
    """The commands and options that an engine supports.

    name : the name of the engine. where : the engine in a sentence. commands : the functions it
    runs, of COMMANDS. limits : the options that it does not take as the local engine does. advice :
    the next step for the user; {option} is the option.
    """

    name: str
    where: str
    commands: tuple[str, ...]
    limits: tuple[Limit, ...] = ()
    advice: str = ""

    def refuse(self, command: str, options: Mapping[str, object]) -> None:
        """Raise SettingError if the engine does not run a command, or not with these values of its
        options.
        """
        if command not in self.commands:
            raise SettingError(self.refusal_of(command))
        for limit in self.limits:
            if not limit.takes(options.get(limit.option, limit.accepted[0])):
                raise SettingError(self.refusal(limit, options[limit.option]))

    def refusal_of(self, command: str) -> str:
        """Return the sentence that refuses a command."""
        return (
            f"{command} does not run {self.where}: got {command}. It runs "
            f"{', '.join(self.commands)}."
        )

    def refusal(self, limit: Limit, value: object) -> str:
        """Return the sentence that refuses a value of an option."""
        option = limit.option
        accepted = " or ".join(map(repr, limit.accepted))
        advice = self.advice.format(option=f"{option} (--{option.replace('_', '-')})")
        rule = f"must be {accepted}" if limit.applies else "is not applicable"
        return f"{option} {rule} {self.where}: got {value!r}; {limit.reason}. {advice}"


LOCAL = Capabilities(
    name="local",
    where="on this machine",
    commands=COMMANDS,
    limits=(
        Limit(
            "update",
            (False,),
            "there is no index as against to add the documents to",
            applies=False,
        ),
    ),
    advice="Name an index as against (--against INDEX), or leave {option} out.",
)
_BUCKETS = Limit(
    "max_bucket_size", (None, "that of the index"), "the buckets of the index are filled already"
)

INDEX = Capabilities(
    name="index",
    where="with an index as against",
    commands=("dedup",),
    limits=(
        Limit(
            "keep", ("first",), "an index decides in the order of arrival, and keeps what it has"
        ),
        Limit("within", (None,), "an index does not store groups, and compares all its documents"),
        Limit(
            "linkage",
            ("sieve",),
            "an index decides about each document once, and a chain would change that",
        ),
        _BUCKETS,
        Limit("audit_sample", (0,), "an index has no scratch files to compare all documents from"),
        Limit(
            "cache_bytes", (None,), "the documents of the run are put into a store, not into memory"
        ),
        Limit(
            "passages",
            (None,),
            "an index does not store the texts in which passages would be found",
        ),
        Limit("group_by", (None,), "an index decides about each document as it comes"),
        Limit(
            "rethreshold",
            (False,),
            "an index compares a document with those that it keeps, and no others",
        ),
    ),
    advice="Leave {option} out.",
)

SPARK = Capabilities(
    name="spark",
    where="on Spark",
    commands=("dedup", "cluster", "find_pairs", "sign"),
    limits=(
        Limit("against", (None, "a collection"), "workers do not share the locks of an index"),
        Limit("update", (False,), "workers do not share the locks of an index"),
        Limit(
            "passages",
            (None,),
            "passages are decided about in the order of all documents, on one machine",
        ),
        Limit(
            "resume",
            (False,),
            "Spark repeats tasks that fail, and keeps nothing of a run that does",
            applies=False,
        ),
        Limit("threads", (None,), "Spark gives a worker its processors", applies=False),
        Limit("batch_rows", (None,), "Spark cuts the batches", applies=False),
        Limit("cache_bytes", (None,), "Spark gives a worker its memory", applies=False),
    ),
    advice="Leave {option} out, or use the local engine (--engine local).",
)


LARGE_SPARK = Capabilities(
    name="large spark",
    where="on Spark with more than the driver collects",
    commands=("dedup",),
    limits=(
        Limit(
            "keep",
            ("first", "last", "longest", "shortest", "source", "max:COLUMN", "min:COLUMN"),
            "workers keep one document of each cluster",
        ),
        Limit("linkage", ("sieve", "connected"), "workers perform two rules"),
        Limit("group_by", (None,), "groups are decided about one after the other, on the driver"),
        Limit("rethreshold", (False,), "the pairs are kept on the driver"),
        Limit("audit_sample", (0,), "the sample is drawn on the driver"),
    ),
    advice=(
        "Leave {option} out, decide about fewer documents at once, or use the local engine "
        "(--engine local)."
    ),
)
"""The capabilities of Spark if workers decide and write the output, because the driver cannot
collect all documents.
"""


def large_spark_of(num_documents: int, num_pairs: int, limit: str) -> Capabilities:
    """Return the capabilities for a run with this many documents and pairs.

    limit : the maximum that the driver collects, in words.
    """
    size = (
        f"{num_documents:,} documents and {num_pairs:,} pairs, of which the driver collects {limit}"
    )
    return LARGE_SPARK._replace(where=f"on Spark with {size}")


def index_of(max_bucket_size: int) -> Capabilities:
    """Return the capabilities of an index whose buckets list at most this many members."""
    buckets = _BUCKETS._replace(accepted=(None, max_bucket_size))
    return INDEX._replace(
        limits=tuple(buckets if limit is _BUCKETS else limit for limit in INDEX.limits)
    )


FRAMES = Capabilities(
    name="frames",
    where="with a DataFrame",
    commands=("dedup", "cluster", "find_pairs", "sign"),
    limits=(
        Limit(
            "keep",
            ("first", "last", "longest", "shortest", "max:COLUMN", "min:COLUMN"),
            "its rows come in the order of their ids, and not of inputs",
        ),
    ),
    advice="Leave {option} out, or pass files to neardup.dedup(engine='spark').",
)
