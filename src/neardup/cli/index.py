"""The command `neardup index`, a group of commands."""

from __future__ import annotations

import click

from neardup.cli import index_care, index_create, index_documents
from neardup.cli.index_imports import imports

index = click.Group(
    "index",
    commands={
        "create": index_create.create,
        "add": index_documents.add,
        "add-if-new": index_documents.add_if_new,
        "query": index_documents.query,
        "get": index_documents.get,
        "remove": index_documents.remove,
        "expire": index_documents.expire,
        "imports": imports,
        "info": index_care.info,
        "verify": index_care.verify,
        "compact": index_care.compact,
        "backup": index_care.backup,
        "merge": index_create.merge,
        "export": index_care.export,
        "rebuild": index_create.rebuild,
    },
    short_help="Keep a durable index of documents: have I seen this before?",
    help="""Keep a durable index of documents, and check whether similar documents were seen before.

    INDEX is a folder or the address of a database: postgresql://..., redis://...

    \b
    Examples:
      neardup index create news.index --threshold 0.8
      neardup index add-if-new news.index monday.jsonl -o new.jsonl
      neardup index query news.index today.jsonl -o hits.parquet
      neardup serve news.index
    """,
)
