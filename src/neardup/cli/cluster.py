"""The command `neardup cluster`."""

from __future__ import annotations

from typing import Any

import neardup
from neardup.cli.methods import build_method
from neardup.cli.running import finish, write_folder
from neardup.cli.settings import Named, command, settings_options
from neardup.cli.sources import (
    folder_options,
    inputs_argument,
    run_options,
)
from neardup.settings.run import KnownSettings, OutputSettings


@command(
    "Group similar documents into clusters.",
    common=(
        "output overwrite resume against text_column id_column method threshold max_distance ngram "
        "linkage threads"
    ),
)
@inputs_argument
@folder_options
@settings_options(KnownSettings, "Input")
@settings_options(OutputSettings, "Output", only=("lang",))
@run_options
def cluster(inputs: list[Named], output: str, **values: Any) -> None:
    """Group the similar documents of a collection into clusters, and show their sizes, names and
    common parts.

    A cluster is a document and the documents that dedup would remove because of it, or a chain of
    similar documents (--linkage connected). DIR gets clusters.parquet, the cluster of each
    document, and cluster_summary.parquet, the size, name and examples of each cluster.

    \b
    Examples:
      neardup cluster crawl.warc.gz -o out/ --method structure        pages by template
      neardup cluster new/ -o out/ --method structure --against known/    which known template is this?
      neardup cluster news.jsonl -o out/ --threshold 0.6 --linkage connected
    """  # noqa: E501
    values["method"] = build_method(values)
    result = write_folder(neardup.cluster, inputs, output, values)
    finish(result.report, result.output)
