"""The options of a run that control how inputs are read; the others are in settings/."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from neardup.formats.registry import FORMATS
from neardup.settings.constraints import ColumnNames, Validated, parameter
from neardup.settings.run import MAX_DOCUMENT_BYTES, Quote, TextUnit


@dataclass(frozen=True, kw_only=True)
class ReadingSettings(Validated):
    """The settings of reading inputs."""

    text_column: ColumnNames = parameter(
        None,
        "The text column; repeatable, to join several. Default: text, content, body, raw_content "
        "or html. Of vectors: vector, embedding or embeddings.",
        list,
        sentinels=("NAME...",),
        alias="--vector-column",
    )
    roles: ColumnNames = parameter(
        None,
        "Of a text of turns, such as messages[].content, the roles to compare, separated by "
        "commas: values of the field role or from. Default: all.",
        list,
        sentinels=("NAME...",),
    )
    id_column: ColumnNames = parameter(
        None,
        "The id column; repeatable, to join several by colons. Default: id, doc_id, document_id, "
        "_id, url, or row numbers.",
        list,
        sentinels=("NAME...",),
    )
    text_unit: TextUnit = parameter(
        "auto",
        (
            "A document of a text file: a line, the whole file, or a line if the input is a single "
            "file (auto)."
        ),
        choices=get_args(TextUnit),
    )
    in_format: str | None = parameter(
        None,
        (
            "The format of all inputs. Default: detected from the suffix, or from the first bytes "
            "of standard input."
        ),
        str,
        choices=FORMATS,  # formats may be registered later
    )
    quote: Quote = parameter(
        "double",
        (
            "The quotes of CSV and TSV: double, which may enclose delimiters and line ends, or "
            "none, where each line is a row."
        ),
        choices=get_args(Quote),
    )
    max_document_bytes: int = parameter(MAX_DOCUMENT_BYTES, "Reject longer documents.", low=1)
