"""Measure how well test items are found in documents, on the corpus of `contamination_corpus.py`;
see README.md.

    python benchmarks/run_contamination.py                         # neardup and the rules of others
    python benchmarks/run_contamination.py --hits out/hits.parquet  # judge hits that are there

Fails (exit code 1) if neardup misses what is asked of it: see `ASKED`.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from time import process_time

import contamination_corpus as corpus
import pyarrow as pa
import pyarrow.parquet as pq
from contamination_boilerplate import FAMILIES
from contamination_peers import Decon, Hit, Question, gpt3
from environment import HERE, conditions
from measure import run

ASKED = (
    dict.fromkeys(corpus.FORMS, 0.95)
    | dict.fromkeys(corpus.FORMS[:5], 0.99)
    | {"separated": 0.99, "renamed": 0.9}
)
"""The least recall of each form; renamed code is asked with `--structure`. Beside it: no hard
negative, and at most one false hit in 1,000 clean items.
"""
STRUCTURE = "neardup --structure"
_FALSE_PER_1000 = 1.0
THIN = (1, 2, 3, 5, 6, 10)
"""In so many documents each text of boilerplate is left, in the last table. Beyond 5, it is
recognised.
"""
_TOKEN = re.compile(r"&#?\w{1,8};|([㐀-鿿]|[^\W_㐀-鿿]+)")  # an entity, or a word


class Truth:
    """The items, the documents, and where items are."""

    def __init__(self, folder: Path) -> None:
        with open(folder / "items.jsonl", encoding="utf-8") as lines:
            self.items = {row["id"]: row for row in map(json.loads, lines)}
        table = pq.read_table(folder / "corpus.parquet")
        self.texts = dict(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))
        rows = pq.read_table(folder / "truth.parquet").to_pylist()
        self.placed = {
            (row["item_id"], row["document_id"]): row for row in rows if row["form"] != "related"
        }
        self.related = {
            (row["item_id"], row["document_id"]) for row in rows if row["form"] == "related"
        }
        self.clean = [name for name, row in self.items.items() if row["role"] == "clean"]

    @cache  # noqa: B019 - lives as long as the program
    def words(self, document_id: str) -> tuple[list[int], list[int]]:
        """Return where the words of a document begin and end."""
        found = _TOKEN.finditer(self.texts[document_id])
        spans = [match.span() for match in found if match[1] is not None]
        return [span[0] for span in spans], [span[1] for span in spans]

    def words_between(self, document_id: str, start: int, end: int) -> tuple[int, int]:
        """Return the numbers of the first word, and of the one after the last, of a span of
        characters.
        """
        starts, ends = self.words(document_id)
        return bisect_right(ends, start), bisect_left(starts, end)


@dataclass
class Score:
    """The answers of one tool. found, asked, right : by form and kind; the last are spans right to
    the word.
    """

    name: str
    found: Counter[tuple[str, str]] = field(default_factory=Counter)
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    right: Counter[tuple[str, str]] = field(default_factory=Counter)
    false_items: set[str] = field(default_factory=set)
    hard: Counter[str] = field(default_factory=Counter)
    strangers: int = 0
    missed: list[dict] = field(default_factory=list)
    wrong: list[Hit] = field(default_factory=list)
    misplaced: list[tuple[dict, Hit]] = field(default_factory=list)
    places: bool = True
    seconds: float = 0.0

    def recall(self, form: str, kind: str | None = None) -> float:
        """Return the share of a form that was found, of one kind or of all."""
        keys = [key for key in self.asked if key[0] == form and kind in (None, key[1])]
        return sum(self.found[key] for key in keys) / max(1, sum(self.asked[key] for key in keys))


def judge(name: str, hits: Iterable[Hit], truth: Truth) -> Score:
    """Return what is right and wrong among hits."""
    score = Score(name)
    by_pair = defaultdict(list)
    flagged = set()
    for hit in hits:
        by_pair[hit.item_id, hit.document_id].append(hit)
    for pair, found in by_pair.items():
        if pair in truth.placed or pair in truth.related:
            continue
        role = truth.items[pair[0]]["role"]
        score.wrong.append(found[0])
        if role == "clean":
            score.false_items.add(pair[0])
        elif role == "planted":
            score.strangers += 1
        elif pair[0] not in flagged:
            flagged.add(pair[0])
            score.hard[role] += 1
    for pair, row in truth.placed.items():
        key = row["form"], row["kind"]
        score.asked[key] += 1
        if pair not in by_pair:
            score.missed.append(row)
            continue
        score.found[key] += 1
        wanted = {
            truth.words_between(pair[1], row["start"], row[end]) for end in ("end", "question_end")
        }
        if any(truth.words_between(pair[1], hit.start, hit.end) in wanted for hit in by_pair[pair]):
            score.right[key] += 1
        else:
            score.misplaced.append((row, by_pair[pair][0]))
    return score


def read_hits(path: Path) -> list[Hit]:
    """Return the hits that `neardup contamination` wrote."""
    names = ["item_id", "document_id", "start", "end", "containment"]
    return [
        Hit(*row.values()) for row in pq.read_table(path, columns=names).select(names).to_pylist()
    ]


def faults(score: Score, truth: Truth) -> list[str]:
    """Return what is asked of neardup and not reached."""
    found = [
        f"{score.name}: {form}: recall {score.recall(form):.4f}, asked {least}"
        for form, least in ASKED.items()
        if score.recall(form) < least and (form != "renamed" or score.name == STRUCTURE)
    ]
    found += [f"{score.name}: hard negatives flagged: {dict(score.hard)}"] if score.hard else []
    if 1000 * len(score.false_items) > _FALSE_PER_1000 * len(truth.clean):
        false_items = f"{len(score.false_items)} of {len(truth.clean)} clean items"
        found.append(f"{score.name}: false hits on {false_items}")
    return found


def markdown(scores: list[Score], truth: Truth) -> str:
    """Return the tables: all tools by form, then neardup by kind."""
    head = [
        "",
        *corpus.FORMS,
        "spans right",
        "false hits per 1,000 clean items",
        "hard negatives",
        "other documents",
    ]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for score in scores:
        cells = [score.name, *(f"{100 * score.recall(form):.1f} %" for form in corpus.FORMS)]
        right = sum(score.right.values()) / max(1, sum(score.found.values()))
        cells += [f"{100 * right:.1f} %" if score.places else "not given"]
        cells += [f"{1000 * len(score.false_items) / len(truth.clean):.1f}"]
        cells += [f"{sum(score.hard.values())} of {_hard(truth)}", str(score.strangers)]
        lines.append("| " + " | ".join(cells) + " |")
    first = scores[0]
    lines += [
        "",
        f"{first.name}, by kind of item; in brackets, the spans that are right to the word:",
        "",
    ]
    lines += ["| | " + " | ".join(corpus.FORMS) + " |", "|---|" + "---:|" * len(corpus.FORMS)]
    for kind in corpus.KINDS:
        cells = []
        for form in corpus.FORMS:
            if not first.asked[form, kind]:
                cells.append("")
                continue
            right = first.right[form, kind] / max(1, first.found[form, kind])
            cells.append(f"{100 * first.recall(form, kind):.1f} % ({100 * right:.0f} %)")
        lines.append(f"| {kind} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def grade_table(hits: Path, truth: Truth) -> str:
    """Return a table of the grades of the hits of placed items, by form."""
    counts = Counter[tuple[str, str]]()
    for hit in pq.read_table(hits, columns=["item_id", "document_id", "grade"]).to_pylist():
        row = truth.placed.get((hit["item_id"], hit["document_id"]))
        if row is not None:
            counts[row["form"], hit["grade"]] += 1
    lines = ["| | " + " | ".join(corpus.FORMS) + " |", "|---|" + "---:|" * len(corpus.FORMS)]
    for grade in ("clear", "possible"):
        cells = [str(counts[form, grade]) for form in corpus.FORMS]
        lines.append(f"| {grade} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def thin_out(truth: Truth, most: int) -> pa.Table:
    """Return the corpus with each text of boilerplate in `most` documents; those with a placed item
    all stay.
    """
    boilerplate = [text for common, _ in FAMILIES.values() for text in common]
    placed = {document_id for _, document_id in truth.placed}
    counts = Counter[str]()
    kept = []
    for document_id, text in truth.texts.items():
        contained = [one for one in boilerplate if one in text]
        if document_id not in placed:
            if any(counts[one] >= most for one in contained):
                continue
            counts.update(contained)
        kept.append({"id": document_id, "text": text})
    return pa.Table.from_pylist(kept)


def measure_thin(truth: Truth, folder: Path, options: list[str]) -> str:
    """Return a table of the hard negatives that neardup reports while few documents have their
    boilerplate.
    """
    head = [
        "documents with each text",
        "hard negatives reported",
        "of these, possible",
        "of these, `num_documents` shows it",
    ]
    lines = ["| " + " | ".join(head) + " |", "|" + "---:|" * len(head)]
    for most in THIN:
        thin = folder / f"thin-{most}"
        thin.mkdir(exist_ok=True)
        pq.write_table(thin_out(truth, most), thin / "corpus.parquet", row_group_size=1000)
        hits = search(folder / "items.jsonl", thin, options)
        found = defaultdict(set)
        grades = defaultdict(set)
        for hit in pq.read_table(hits, columns=["item_id", "num_documents", "grade"]).to_pylist():
            if truth.items[hit["item_id"]]["role"] in FAMILIES:
                found[hit["item_id"]].add(hit["num_documents"])
                grades[hit["item_id"]].add(hit["grade"])
        shown = sum(min(counts) > 1 for counts in found.values())
        possible = sum(some == {"possible"} for some in grades.values())
        lines.append(f"| {most} | {len(found)} of {_hard(truth)} | {possible} | {shown} |")
    return "\n".join(lines) + "\n"


def search(items: Path, folder: Path, options: list[str]) -> Path:
    """Search the corpus in a folder with neardup; return its hits."""
    out = folder / "out"
    log = folder / "run.log"
    command = [
        sys.executable,
        "-m",
        "neardup",
        "contamination",
        str(items),
        "--corpus",
        str(folder / "corpus.parquet"),
    ]
    took = run([*command, "-o", str(out), "--overwrite", *options], log=log)
    if took.code:
        sys.exit(log.read_text())
    print(f"neardup: {took.wall_s:.1f} s, {took.cpu_s:.1f} CPU s, {took.peak_mb:.0f} MB")
    return out / "hits.parquet"


def _hard(truth: Truth) -> int:
    return sum(row["role"] in FAMILIES for row in truth.items.values())


def peers(truth: Truth) -> list[Score]:
    """Return the answers of the rules of others."""

    def questions(*, answers: bool) -> list[Question]:
        return [
            Question(name, row["task"], row["question"], (row["answer"] or "") if answers else "")
            for name, row in truth.items.items()
        ]

    rules = {
        "13-grams, GPT-3": lambda: gpt3(questions(answers=False), truth.texts.items()),
        "decon": lambda: Decon(questions(answers=True)).find(truth.texts.items()),
        "decon, questions only": lambda: Decon(questions(answers=False)).find(truth.texts.items()),
    }
    scores = []
    for name, rule in rules.items():
        begin = process_time()
        hits = list(rule())
        scores.append(judge(name, hits, truth))
        scores[-1].seconds = process_time() - begin
    return scores


_ASSAY = """benchmarks:
  - name: items
    dataset: json
    data_files: {{test: {items}}}
    splits: [test]
    fields: [question, answer]
ngram: 13
min_hits: {min_hits}
min_coverage: {min_coverage}
"""


ASSAY_SCAN = ["scan", "--id-key", "id", "--max-return-records", "1000000"]


def build_assay_index(
    command: str, items: Path, work: Path, *, min_hits: int, min_coverage: float
) -> tuple[Path, Path]:
    """Build the index of corpus-assay for items with a question and an answer; return its settings
    and the index.
    """
    lines = [json.loads(line) for line in items.read_text("utf-8").split("\n")[:-1]]
    plain, config, index = (work / f"assay-{min_hits}.{end}" for end in ("jsonl", "yaml", "native"))
    rows = [
        json.dumps({"question": row["question"], "answer": row["answer"] or ""}) for row in lines
    ]
    plain.write_text("\n".join(rows) + "\n")
    config.write_text(_ASSAY.format(items=plain, min_hits=min_hits, min_coverage=min_coverage))
    build = [
        command,
        "build-index",
        "--config",
        str(config),
        "--out-index",
        str(index),
        "--allow-unpinned",
    ]
    subprocess.run(build, check=True, capture_output=True)
    return config, index


def assay(command: str, truth: Truth, folder: Path, *, min_hits: int, min_coverage: float) -> Score:
    """Return the answers of corpus-assay, which names items and no places."""
    limits = {"min_hits": min_hits, "min_coverage": min_coverage}
    config, index = build_assay_index(command, folder / "items.jsonl", folder, **limits)
    out = folder / f"assay-{min_hits}"
    scan = [command, *ASSAY_SCAN, "--config", str(config), "--index", str(index)]
    took = run(
        [*scan, "--input", str(folder / "corpus.parquet"), "--out-dir", str(out)],
        log=folder / "scan.log",
    )
    names = list(truth.items)
    hits = []
    for path in sorted((out / "contaminated_docs").glob("*.ndjson")):
        for row in map(json.loads, path.read_text("utf-8").split("\n")[:-1]):
            document = row["doc_id"].rsplit("-part-", 1)[0]
            hits += [Hit(names[one["item_id"]], document, 0, 0, 1.0) for one in row["item_hits"]]
    score = judge(f"corpus-assay, min_hits {min_hits}", hits, truth)
    score.seconds = took.cpu_s
    score.places = False
    return score


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--work", type=Path, default=HERE / "work" / "contamination", help="inputs and outputs"
    )
    parser.add_argument("--data", type=Path, default=corpus.SHARED, help="the real texts")
    parser.add_argument(
        "--hits", type=Path, help="judge these hits of neardup instead of running it"
    )
    parser.add_argument(
        "--options", nargs="*", default=[], help="more options of neardup contamination"
    )
    parser.add_argument("--assay", help="the command corpus-assay, installed with Python 3.12")
    parser.add_argument("--no-peers", action="store_true", help="neardup alone")
    parser.add_argument("--results", type=Path, help="write the tables to this file")
    parser.add_argument("--examples", type=int, default=3, help="faults shown of each sort")
    return parser.parse_args()


def main() -> int:
    args = parse_arguments()
    if not (args.work / "truth.parquet").exists():
        corpus.main(["--out", str(args.work), "--data", str(args.data)])
    truth = Truth(args.work)
    scores = []
    hits = args.hits
    if hits is None:
        hits = search(args.work / "items.jsonl", args.work, args.options)
    scores = [judge("neardup", read_hits(hits), truth)]
    grades = ""
    if args.hits is None:
        grades = grade_table(hits, truth)
        hits = search(args.work / "items.jsonl", args.work, [*args.options, "--structure"])
        scores.append(judge(STRUCTURE, read_hits(hits), truth))
    if not args.no_peers:
        scores += peers(truth)
    if args.assay:
        scores += [
            assay(args.assay, truth, args.work, min_hits=n, min_coverage=c)
            for n, c in ((3, 0.001), (1, 0.0))
        ]
    tables = markdown(scores, truth)
    if args.hits is None:
        tables += f"\nneardup, grades of the hits:\n\n{grades}"
        tables += "\nneardup, with each text of boilerplate in few documents:\n\n"
        tables += measure_thin(truth, args.work, args.options)
    if args.results:
        args.results.write_text(
            f"{INTRODUCTION.format(hard=_hard(truth), conditions=conditions())}\n{tables}"
        )
    print(tables)
    show(scores[0], truth, args.examples)
    ours = [score for score in scores if score.name.startswith("neardup")]
    found = [fault for score in ours for fault in faults(score, truth)]
    print("\n".join(found) or "All that is asked is reached.")
    return 1 if found else 0


def show(score: Score, truth: Truth, examples: int) -> None:
    """Print some faults of each sort."""
    counts = Counter((row["form"], row["kind"]) for row in score.missed)
    for (form, kind), count in counts.most_common():
        print(f"\nmissed: {form}, {kind}: {count}")
        for row in [row for row in score.missed if (row["form"], row["kind"]) == (form, kind)][
            :examples
        ]:
            text = truth.texts[row["document_id"]]
            print(
                f"  {row['item_id']} in {row['document_id']}: "
                f"{text[row['start'] : row['end']][:160]!r}"
            )
    for hit in score.wrong[: 5 * examples]:
        item = truth.items[hit.item_id]
        print(f"\nwrong: {hit.item_id} ({item['role']}) in {hit.document_id}, {hit.score:.2f}")
        print(f"  item: {item['question'][:160]!r}")
        print(f"  document: {truth.texts[hit.document_id][hit.start : hit.end][:160]!r}")
    for row, hit in score.misplaced[: 3 * examples]:
        text = truth.texts[hit.document_id]
        print(f"\nspan: {hit.item_id} in {hit.document_id}, {row['form']}, {row['kind']}")
        print(
            f"  expected {row['start']}..{row['question_end']} or ..{row['end']}, got "
            f"{hit.start}..{hit.end}"
        )
        print(
            f"  expected {text[row['start'] : row['end']][:160]!r}\n  got "
            f"{text[hit.start : hit.end][:160]!r}"
        )


INTRODUCTION = """# Contamination: test items in documents

Made by `benchmarks/run_contamination.py --results FILE`, which builds the corpus, judges every pair of an item and a
document, and says what is asked of neardup. Read this first:

- **The corpus is built** (`benchmarks/contamination_corpus.py`): 300 real items in each of eight forms, an item a
  document; a fifth of them short (8 to 24 words), long (50 words or more), code, mathematics and Chinese. Half of them
  have their choices and answer. *Words changed*: one word (character) of each twelve. *First half*: of items of 20
  words or more, where most of the half is in no other item. *Separated*: question here, answer some 200 words later.
  *Entities*: signs and some spaces as entities of HTML. Three more forms have 60 items each: *rendered*, mathematics
  whose LaTeX is plain text; *renamed*, functions with other names, without comments and docstrings, found with
  `--structure` only; *answer alone*, the body of a function (25 words or more) without its signature and docstring.
  `benchmarks/contamination_forms.py` writes these forms, and shares no code with neardup.
  *Spans right*: of those found, the ones whose place is that of the question, or of all that was placed, to the word.
- **Clean items** are in no document; pairs that share a third of their 5-grams by nature (of code, a seventh) are
  not judged. *Hard negatives* are {hard} items of ten families that share nothing with the corpus but a text of 20 to
  40 documents. neardup recognises boilerplate by its number of documents, beyond 5 here, so it cannot report any of
  these. The last table leaves each text in fewer documents; *possible* is the grade of a hit that lacks a whole part
  of its item. *Other documents*: pairs of a placed item with a document that does not contain it.
- **The rules of others** are rewritten in plain Python from their publications (`benchmarks/contamination_peers.py`).
  GPT-3's asks for N words in a row, N from 8 to 13 by the task; blanks separate words, so that it finds 2 % of the
  Chinese items. decon asks for the answer near the question by default; the second row looks for questions only.
- **corpus-assay** 0.1.0, a row if `--assay` names it. Its stop words and patterns of boilerplate are as installed; it
  names documents and items, and no places. On an earlier corpus, of seven forms, it found 49.3 % verbatim with its
  default of three 13-grams, 52.3 % with one, and reported 147 and 157 of 193 hard negatives.
- {conditions}
"""  # noqa: E501

if __name__ == "__main__":
    sys.exit(main())
