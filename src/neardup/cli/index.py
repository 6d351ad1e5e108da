"""The command `neardup index`, a group of commands."""

import click

from neardup.cli import index_documents, index_imports, index_whole
from neardup.cli.settings import commands_of

imports = click.Group(
    "imports",
    commands=commands_of(index_imports),
    short_help="Add or forget documents together.",
    help="""Stage documents in an import, then add them all at once or drop them.

    \b
    Examples:
      neardup index imports open news.index monday
      neardup index imports stage news.index monday pages.jsonl
      neardup index imports commit news.index monday
      neardup index imports remove news.index monday       to forget them again
    """,
)

index = click.Group(
    "index",
    commands={**commands_of(index_whole, index_documents), "imports": imports},
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
