"""Measure the time of a search for 57,000 items in large files, against `neardup sign` and a peer.

    python benchmarks/contamination_speed.py part-*.parquet [--assay COMMAND]

The items are the questions of MMLU and AGIEval, sentences and poems; one in a hundred is a piece of
a document. Tools take turns. `neardup sign --num-hashes 1` reads the same files and splits them
into shingles: it is what reading costs.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import sys
from pathlib import Path

import contamination_corpus as corpus
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from environment import HERE
from measure import Measurement, run
from run_contamination import ASSAY_SCAN, build_assay_index


def make_items(data: Path, files: list[Path], out: Path, count: int) -> None:
    """Write items: real questions, sentences and poems, all different, and pieces of documents."""
    draw = random.Random(1)
    rows = [
        (row["question"], row.get("choices"), row.get("answer"))
        for row in corpus.read_set("eval_items", data)
    ]
    texts = [
        text
        for row in corpus.read_set("short_pairs", data)
        for text in (row["text_a"], row["text_b"])
    ]
    texts += [row["text"] for row in corpus.read_set("zh_poetry", data)[::5]]
    for row in corpus.read_set("en_terms", data) + corpus.read_set("en_bible", data):
        texts += [
            one for one in re.split(r"(?<=[.?!])\s+", row["text"]) if 8 <= len(one.split()) <= 80
        ]
    texts = [text for text in dict.fromkeys(texts) if len(text) > 20]
    draw.shuffle(texts)
    pieces = pq.ParquetFile(files[0]).read_row_group(0, columns=["text"])["text"].to_pylist()
    for text in draw.sample(pieces, count // 100):
        words = text.split()
        begin = draw.randrange(max(1, len(words) - 40))
        rows.append((" ".join(words[begin : begin + 40]), None, None))
    rows += [(text, None, None) for text in texts[: count - len(rows)]]
    with open(out, "w", encoding="utf-8") as lines:
        for number, (question, choices, answer) in enumerate(rows[:count]):
            fields = {
                "id": f"item-{number}",
                "question": question,
                "choices": choices,
                "answer": answer,
                "task": "all",
            }
            lines.write(json.dumps(fields, ensure_ascii=False) + "\n")


def plain_files(files: list[Path], work: Path) -> list[str]:
    """Return the files with ids and texts as plain strings, as corpus-assay wants them."""
    copies = []
    for file in files:
        copies.append(str(work / f"plain-{file.name}"))
        table = pq.read_table(file, columns=["id", "text"])
        pq.write_table(
            table.cast(pa.schema([("id", pa.string()), ("text", pa.string())])), copies[-1]
        )
    return copies


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "files", nargs="+", type=Path, help="Parquet files with the columns id and text"
    )
    parser.add_argument("--work", type=Path, default=HERE / "work" / "contamination-speed")
    parser.add_argument("--data", type=Path, default=corpus.SHARED)
    parser.add_argument("--items", type=int, default=57_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--assay", help="the command corpus-assay, installed with Python 3.12")
    parser.add_argument(
        "--options", nargs="*", default=[], help="more options of neardup contamination"
    )
    parser.add_argument("--limit-s", type=float, default=1800)
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    args.work.mkdir(parents=True, exist_ok=True)
    items = args.work / "items.jsonl"
    files = [str(path) for path in args.files]
    make_items(args.data, args.files, items, args.items)
    neardup = [sys.executable, "-m", "neardup"]
    commands = {
        "neardup sign": [
            *neardup,
            "sign",
            *files,
            "--num-hashes",
            "1",
            "-o",
            str(args.work / "signatures.parquet"),
        ],
        "neardup contamination": [*neardup, "contamination", str(items), "--corpus"],
    }
    commands["neardup sign"] += ["--overwrite"]
    for number, file in enumerate(files):
        commands["neardup contamination"] += ["--corpus"] * bool(number) + [file]
    commands["neardup contamination"] += [
        "-o",
        str(args.work / "out"),
        "--overwrite",
        *args.options,
    ]
    if args.assay:
        config, index = build_assay_index(
            args.assay, items, args.work, min_hits=3, min_coverage=0.001
        )
        commands["corpus-assay"] = [
            args.assay,
            *ASSAY_SCAN,
            "--config",
            str(config),
            "--index",
            str(index),
        ]
        commands["corpus-assay"] += ["--workers", "2", "--out-dir", str(args.work / "assay-out")]
        commands["corpus-assay"] += [
            part for file in plain_files(args.files, args.work) for part in ("--input", file)
        ]
    texts = (
        batch["text"]
        for file in files
        for batch in pq.ParquetFile(file).iter_batches(columns=["text"])
    )
    megabytes = sum(pc.sum(pc.binary_length(one)).as_py() for one in texts) / 1e6
    took: dict[str, list[Measurement]] = {name: [] for name in commands}
    for number in range(args.runs + 1):
        for name, command in commands.items():
            if name == "corpus-assay" and number != 1:  # once: it takes minutes
                continue
            one = run(
                command, log=args.work / f"{name.replace(' ', '-')}.log", timeout_s=args.limit_s
            )
            print(
                f"{name}: {one.wall_s:.1f} s, {one.cpu_s:.1f} CPU s, {one.peak_mb:.0f} MB",
                flush=True,
            )
            summary = args.work / "assay-out" / "_FINAL_SUMMARY.json"
            if one.code or (
                name == "corpus-assay" and json.loads(summary.read_text())["failed_files"]
            ):
                sys.exit((args.work / f"{name.replace(' ', '-')}.log").read_text())
            if number or name == "corpus-assay":  # the first compiles
                took[name].append(one)
    base = statistics.median(one.cpu_s for one in took["neardup sign"])
    print(
        f"\n{args.items:,} items, {megabytes:,.0f} MB of text\n\n| | s | CPU s | MB/s | CPU s "
        "of sign | peak MB |"
    )
    print("|---|---:|---:|---:|---:|---:|")
    for name, runs in took.items():
        wall, cpu = (
            statistics.median(getattr(one, unit) for one in runs) for unit in ("wall_s", "cpu_s")
        )
        peak = max(one.peak_mb for one in runs)
        print(
            f"| {name} | {wall:.1f} | {cpu:.1f} | {megabytes / wall:.1f} | {cpu / base:.2f} | "
            f"{peak:.0f} |"
        )


if __name__ == "__main__":
    main()
