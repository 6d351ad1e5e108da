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
    "audit",
)
"""The functions that run over a collection, and the commands of the same names."""


class Limit(NamedTuple):
    """An option whose values an engine limits.

    reason : the reason for the limit, as a clause. accepted : the accepted values; the first is the
    default. A value with a column is listed with the word COLUMN: "max:COLUMN" accepts max:length.
    applies : False if the option has no meaning for the engine: the error then calls it not
    applicable.
    """

    option: str
    reason: str
    accepted: tuple[object, ...] = (None,)
    applies: bool = True

    def accepts(self, value: object) -> bool:
        """Return whether a value is accepted. Of keys joined by commas, each must be."""
        # Before the keys are split: "none" and other values without commas, and None.
        if value in self.accepted:
            return True
        # A key such as max:score is accepted as max:COLUMN.
        keys = {re.sub("(?s):.*", ":COLUMN", key) for key in str(value).split(",")}
        return keys <= set(self.accepted)


class Capabilities(NamedTuple):
    """The commands and options that an engine supports.

    name : the name of the engine. where : the engine in a sentence. commands : the functions that
    it runs, from COMMANDS. limits : the options that it supports only with some values. advice :
    the next step for the user; {option} is replaced by the option.
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
            raise SettingError(self.command_refusal(command))
        for limit in self.limits:
            # The first accepted value is the default of the option.
            default = limit.accepted[0]
            # An option that the command does not have counts as its default.
            if not limit.accepts(options.get(limit.option, default)):
                raise SettingError(self.refusal(limit, options[limit.option]))

    def command_refusal(self, command: str) -> str:
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
            accepted=(False,),
            reason="there is no index as against to add the documents to",
            applies=False,
        ),
    ),
    advice="Name an index as against (--against INDEX), or leave {option} out.",
)
# Replaced by `index_of`, which knows the size of the buckets of the index.
_BUCKETS = Limit(
    "max_bucket_size",
    accepted=(None, "that of the index"),
    reason="the buckets of the index are filled already",
)

INDEX = Capabilities(
    name="index",
    where="with an index as against",
    commands=("dedup",),
    limits=(
        Limit(
            "keep",
            accepted=("first",),
            reason="an index decides in the order of arrival, and keeps what it has",
        ),
        Limit(
            "within",
            reason="an index does not store groups, and compares all its documents",
        ),
        Limit(
            "linkage",
            accepted=("sieve",),
            reason="an index decides about each document once, and a chain would change that",
        ),
        _BUCKETS,
        Limit(
            "recall_sample",
            accepted=(0,),
            reason="an index has no scratch files to compare all documents from",
        ),
        Limit(
            "cache_bytes",
            reason="the documents of the run are put into a store, not into memory",
        ),
        Limit(
            "passages",
            reason="an index does not store the texts in which passages would be found",
        ),
        Limit("group_by", reason="an index decides about each document as it comes"),
        Limit(
            "rethreshold",
            accepted=(False,),
            reason="an index compares a document with those that it keeps, and no others",
        ),
    ),
    advice="Leave {option} out.",
)

SPARK = Capabilities(
    name="spark",
    where="on Spark",
    commands=(
        "dedup",
        "cluster",
        "find_pairs",
        "sign",
        "evaluate",
        "document_frequencies",
        "find_contamination",
    ),
    limits=(
        Limit(
            "against",
            accepted=(None, "a collection"),
            reason="workers do not share the locks of an index",
        ),
        Limit(
            "corpus",
            accepted=("a collection", None),
            reason="workers do not share the locks of an index",
        ),
        Limit("update", accepted=(False,), reason="workers do not share the locks of an index"),
        Limit(
            "passages",
            reason="passages are decided about in the order of all documents, on one machine",
        ),
        Limit(
            "resume",
            accepted=(False,),
            reason="Spark repeats tasks that fail, and keeps nothing of a run that does",
            applies=False,
        ),
        Limit("threads", reason="Spark gives a worker its processors", applies=False),
        Limit("batch_rows", reason="Spark cuts the batches", applies=False),
        Limit("cache_bytes", reason="Spark gives a worker its memory", applies=False),
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
            accepted=("first", "last", "longest", "shortest", "source", "max:COLUMN", "min:COLUMN"),
            reason="workers keep one document of each cluster",
        ),
        Limit("linkage", accepted=("sieve", "connected"), reason="workers perform two rules"),
        Limit(
            "group_by",
            reason="groups are decided about one after the other, on the driver",
        ),
        Limit("rethreshold", accepted=(False,), reason="the pairs are kept on the driver"),
        Limit("recall_sample", accepted=(0,), reason="the sample is drawn on the driver"),
        Limit("sources", reason="the values of all documents are on the driver"),
        Limit("dates", reason="the values of all documents are on the driver"),
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
    commands=("dedup", "cluster", "find_pairs", "sign", "document_frequencies"),
    limits=(
        Limit(
            "keep",
            accepted=("first", "last", "longest", "shortest", "max:COLUMN", "min:COLUMN"),
            reason="its rows come in the order of their ids, and not of inputs",
        ),
    ),
    advice="Leave {option} out, or pass files to neardup.dedup(engine='spark').",
)
