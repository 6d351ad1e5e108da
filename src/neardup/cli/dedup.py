"""The command `neardup dedup`."""

from __future__ import annotations

import shutil
import sys
from typing import Any

import neardup
from neardup.cli.methods import build_method, is_method_given
from neardup.cli.running import (
    exit_if_incomplete,
    finish,
    running,
    temporary_folder,
    write_folder,
)
from neardup.cli.settings import Named, command, settings_options
from neardup.cli.sources import (
    count_inputs,
    folder_options,
    inputs_argument,
    run_options,
)
from neardup.errors import SettingError
from neardup.files import JsonObject
from neardup.settings.run import EarlierSettings, FolderSettings, GroupSettings, OutputSettings


@command(
    "Remove near-duplicates, keep one of each, show why.",
    common="output write overwrite resume against text_column id_column method threshold ngram keep",  # noqa: E501
)
@inputs_argument
@folder_options
@settings_options(OutputSettings, "Output")
@settings_options(GroupSettings, "Decision")
@settings_options(EarlierSettings, "Input")
@run_options
def dedup(inputs: list[Named], output: str, **values: Any) -> None:
    """Remove the near-duplicates of a collection, keep one of each, and show why.

    INPUT is a file (Parquet, Arrow, JSONL, CSV, TSV, text; .gz, .zst, .bz2, .xz), a folder, a
    pattern, an address such as s3://bucket/key, or - for standard input. DIR gets kept/ in the
    format of the input, and removed.parquet.

    \b
    Examples:
      neardup dedup news.parquet more/*.jsonl.zst -o out/
      neardup dedup pages/ -o out/ --threshold 0.7 --ngram 3 --recall 0.999 --keep longest
      neardup dedup new.parquet --against old.parquet -o out/
      neardup dedup new.parquet --against news.index -o out/ --update
      neardup dedup --config out/report.json -o again/        the same run again
      zstdcat big.jsonl.zst | neardup dedup - -o out/ --json | jq .counts
      neardup dedup in.jsonl -o - | gzip > clean.jsonl.gz     one input, to standard output
    """
    # --threshold alone chooses no method: the default method takes it, and an index compares it
    # with its own.
    threshold = values["threshold"]
    chooses_method = is_method_given(values | {"threshold": None})
    built = build_method(values)  # takes the options of methods, also the threshold, from `values`
    values["method"] = built if chooses_method else None
    values["threshold"] = None if chooses_method else threshold
    if output == "-":
        _print_kept(inputs, values)
        return
    result = write_folder(neardup.dedup, inputs, output, values)
    finish(result.report, result.output)


def _print_kept(inputs: list[Named], values: JsonObject) -> None:
    """Write the kept documents of one input, and nothing more, to standard output."""
    if values["write"] != "kept" or values["resume"]:
        raise SettingError(
            "-o - writes the kept documents to standard output: got --write or --resume. Leave it "
            "out, or use -o DIR."
        )
    # Before the temporary folder, whose error would not name --scratch.
    FolderSettings(scratch=values["scratch"])
    # Before the run, too: --update has changed the index when the run ends.
    _refuse_several(count_inputs(inputs, values))
    with running("Nothing was written."), temporary_folder(values["scratch"]) as folder:
        output = folder / "out"
        # Scratch files are in this folder, too: without the name of an output, no later run could
        # find and resume them.
        result = neardup.dedup(inputs, output=output, tables=False, **values | {"scratch": None})
        kept = [part["kept"] for part in result.report["inputs"] if part["role"] == "source"]
        # Counted again: the run lists the inputs anew, and a file may have been added to a folder.
        _refuse_several(len(kept))
        kept_file = output / "kept" / kept[0]
        # A file that is one document, such as a web page, has no output if it is not kept.
        if kept_file.exists():
            with open(kept_file, "rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
            # Here, so that a closed pipe is an error of this command, not of the interpreter's
            # exit.
            sys.stdout.buffer.flush()
    exit_if_incomplete(result.report, is_shown=False)


def _refuse_several(num_inputs: int) -> None:
    """Raise SettingError unless there is one input: formats of several cannot share a stream."""
    if num_inputs != 1:
        raise SettingError(
            f"-o - writes the kept documents of one input: got {num_inputs} inputs. Name one "
            "file, or a folder as output (-o DIR)."
        )
