"""Build a corpus with test items in known places: the truth of `run_contamination.py`.

    python benchmarks/contamination_corpus.py --out DIR

Writes items.jsonl (id, question, choices, answer, task, kind), corpus.parquet (id, text) and
truth.parquet. The items are real: questions of MMLU and AGIEval, functions of Python's standard
library with their docstrings, Chinese poems and articles of laws. 300 are placed in each of seven
forms; at least 1,000 are in no document. Ten families of items share nothing with the corpus but
text that many documents contain. A row of the truth names a pair of an item and a document:

- form: one of `FORMS`, for a placed item; "related" for a pair that shares text by nature, such as
  two questions on one source, which is not judged;
- start, end: the characters of the document that the item takes; question_start, question_end:
  those of its question.

The same seed, data and version of Python give the same files.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import html
import json
import random
import re
import sys
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import contamination_forms as forms
import pyarrow as pa
import pyarrow.parquet as pq
from contamination_boilerplate import FAMILIES

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
FORMS = (
    "verbatim",
    "paragraph",
    "wrapped",
    "long document",
    "words changed",
    "first half",
    "separated",
    "entities",
    "rendered",
    "renamed",
    "answer alone",
)
"""See `place`. Rendered are items of mathematics; renamed and answer alone are items of code."""
KINDS = ("short", "long", "code", "mathematics", "Chinese")
KINDS_OF_FORM = {"rendered": ("mathematics",), "renamed": ("code",), "answer alone": ("code",)}
_MIN_SOLUTION = 25  # words of an answer that is placed alone, and of renamed code
PER_FORM = 300
CLEAN_ITEMS = 1500
CLEAN_DOCUMENTS = 2000
_MIN_CLEAN = 150  # in a small corpus, so that there are some of each kind
# of each family
HARD_ITEMS = 20
HARD_DOCUMENTS = 40
_SHINGLE, _COMMON = 5, 10  # tokens; documents of a common shingle
# share of the other shingles
_RELATED = 0.35
_RELATED_CODE = 0.15
_LEAST_HALVED = (
    20  # words of an item of which a half is quoted: fewer than ten words are no quotation
)
_TOKEN = re.compile(r"[㐀-鿿]|[^\W_㐀-鿿]+")
_ANSWERS = "ABCDEFGHIJ"


@dataclass
class Item:
    """A test item. role: planted, clean, or the family of a hard negative."""

    id: str
    kind: str
    task: str
    question: str
    choices: list[str] | None = None
    answer: str | None = None
    role: str = "clean"


@dataclass
class Document:
    """A document, with the pieces of its text; `spans` are rows of the truth without their
    document.
    """

    id: str
    text: str = ""
    spans: list[dict] = field(default_factory=list)


def tokens_of(text: str) -> list[str]:
    """Return words in lower case; of Chinese, the characters."""
    return _TOKEN.findall(text.lower())


def shingles_of(text: str) -> set[tuple[str, ...]]:
    """Return the sequences of five tokens; all of a shorter text."""
    tokens = tokens_of(text)
    return {tuple(tokens[i : i + _SHINGLE]) for i in range(max(1, len(tokens) - _SHINGLE + 1))}


def read_set(name: str, data: Path) -> list[dict]:
    """Return the rows of a set of real texts."""
    path = next(
        path
        for path in sorted((data / name).iterdir())
        if path.name.startswith(("data.", "documents."))
    )
    if path.suffix == ".gz":
        lines = gzip.decompress(path.read_bytes()).splitlines()
    else:
        lines = pa.input_stream(str(path), compression="zstd").read().splitlines()
    return [json.loads(line) for line in lines]


# Items.


def exam_items(data: Path) -> list[Item]:
    """Return the test items of MMLU and AGIEval that need no passage."""
    items = []
    for row in read_set("eval_items", data):
        question = row["question"].strip()
        task = row["task"]
        if row.get("passage"):
            continue
        words = len(tokens_of(question))
        mathematics = task in ("math", "aqua_rat", "sat_math")
        kind = (
            "mathematics"
            if mathematics
            else "long"
            if words >= 50
            else "short"
            if 8 <= words <= 24
            else "other"
        )
        items.append(
            Item(row["id"], kind, row["task"], question, row.get("choices"), row.get("answer"))
        )
    return items


def code_items(library: Path) -> Iterator[Item]:
    """Yield functions as prompts: the question is the signature and the docstring, the answer the
    body.
    """
    for path in sorted(library.glob("*.py")):
        source = path.read_text("utf-8", "replace")
        for node in ast.walk(ast.parse(source)):
            if (
                not isinstance(node, ast.FunctionDef)
                or not 15 <= len((ast.get_docstring(node) or "").split()) <= 120
            ):
                continue
            lines = source.splitlines()
            end = node.body[0].end_lineno or 0
            question = "\n".join(lines[node.lineno - 1 : end])
            body = "\n".join(lines[end : node.end_lineno])
            if body.strip() and node.end_lineno - end < 40:
                name = f"code-{path.stem}-{node.lineno}"
                yield Item(name, "code", "python", question, None, body)


def chinese_items(data: Path) -> Iterator[Item]:
    """Yield articles of laws and poems as questions."""
    seen = set()
    for row in read_set("zh_laws", data):
        articles = [
            one
            for one in re.split(r"\n(?=第.{1,6}条)", row["text"])
            if 40 <= len(tokens_of(one)) <= 160
        ]
        if row["cluster"] not in seen and len(articles) > 6:
            seen.add(row["cluster"])
            question = re.sub(r"^第.{1,6}条\s*", "", articles[5]).strip()
            yield Item(f"law-{row['id']}", "Chinese", "law", question, None, row["cluster"])
    for row in read_set("zh_poetry", data)[::40]:
        if (
            row["edition"] == "quantangshi"
            and 40 <= len(tokens_of(row["text"])) <= 120
            and row["title"]
        ):
            yield Item(
                f"poem-{row['id']}",
                "Chinese",
                "poetry",
                row["text"],
                None,
                f"{row['author']}《{row['title']}》",
            )


# Texts of the haystack.


class Haystack:
    """Real texts, by the kind of item that is placed in them."""

    def __init__(self, data: Path, library: Path, exams: list[Item], draw: random.Random) -> None:
        english = [
            row["text"]
            for name in ("en_terms", "en_doc_versions", "en_bible")
            for row in read_set(name, data)
        ]
        self.code = [
            path.read_text("utf-8", "replace")
            for path in sorted(library.glob("*/*.py"))
            if path.stat().st_size > 3000
        ]
        self.chinese = [row["text"] for row in read_set("zh_laws", data)[1::2]]
        self.chinese += [row["text"] for row in read_set("zh_ts", data) if row["script"] == "hans"]
        self.english = [text for text in english if len(text) > 2000]
        self.exams = exams
        self.draw = draw

    def text(self, kind: str, words: int) -> str:
        """Return a text of about so many words, cut from real ones; a page of exam questions now
        and then.
        """
        if side_of(kind) == "English" and self.draw.random() < 0.3:
            return self._exam_page(words)
        source = {"code": self.code, "Chinese": self.chinese}.get(kind, self.english)
        parts: list[str] = []
        while words > 0:
            text = self.draw.choice(source)
            length = words * (2 if kind == "Chinese" else 7)
            begin = self.draw.randrange(max(1, len(text) - length))
            begin = text.rfind("\n", 0, begin) + 1
            parts.append(text[begin : begin + length])
            words -= max(50, len(tokens_of(parts[-1])))
        return "\n".join(parts)

    def _exam_page(self, words: int) -> str:
        parts = []
        number = 0
        while words > 0:
            number += 1
            one = self.draw.choice(self.exams)
            parts.append(f"{number}. {written(one, whole=True)}")
            words -= len(parts[-1].split())
        return "\n\n".join(parts)


def written(item: Item, *, whole: bool) -> str:
    """Return an item as a page prints it: its question, or all of it."""
    if not whole:
        return item.question
    parts = [item.question]
    rest = answer_part(item)
    return "\n".join([*parts, rest]) if rest else item.question


def answer_part(item: Item) -> str:
    """Return the choices and the answer as a page prints them."""
    if item.kind == "code":
        return item.answer or ""
    lines = []
    for letter, choice in zip(_ANSWERS, item.choices or [], strict=False):
        lines.append(choice if choice.startswith("(") else f"{letter}. {choice}")
    if item.answer:
        lines.append(f"Answer: {item.answer}" if item.kind != "Chinese" else f"答案：{item.answer}")
    return "\n".join(lines)


# Forms.


def side_of(kind: str) -> str:
    """Return which texts surround an item of a kind: code, Chinese or English."""
    return kind if kind in ("code", "Chinese") else "English"


def pieces_of(text: str) -> list[str]:
    """Return the words of a text with the blanks after them; of Chinese, the characters."""
    return re.findall(r"[㐀-鿿]\s*|[^\s㐀-鿿]+\s*", text)


def wrap(text: str, words: int) -> str:
    """Return a text in lines of so many words."""
    pieces = [
        piece.rstrip() + (" " if piece != piece.rstrip() else "") for piece in pieces_of(text)
    ]
    return "\n".join("".join(pieces[i : i + words]).rstrip() for i in range(0, len(pieces), words))


def change_words(text: str, vocabulary: list[str], draw: random.Random) -> str:
    """Return a text with one word of each twelve replaced, not at its ends; a shorter text as it
    is.
    """
    pieces = pieces_of(text)
    for begin in range(0, len(pieces) - 11, 12):
        place = min(max(begin + draw.randrange(12), 3), len(pieces) - 4)
        blank = pieces[place][len(pieces[place].rstrip()) :]
        pieces[place] = (
            draw.choice([word for word in vocabulary[:50] if word != pieces[place].strip()]) + blank
        )
        draw.shuffle(vocabulary)
    return "".join(pieces)


def first_half(text: str) -> str:
    """Return the first half of the words of a text."""
    ends = [match.end() for match in _TOKEN.finditer(text)]
    return text[: ends[(len(ends) - 1) // 2]]


def place(item: Item, form: str, number: int, haystack: Haystack) -> Document:
    """Return a document that contains an item in a form."""
    draw = haystack.draw
    words = 4000 if form == "long document" else draw.randrange(200, 1200)
    text = haystack.text(item.kind, words)
    whole = bool(number % 2) and form not in ("first half", "separated")
    piece = written(item, whole=whole)
    question = item.question
    if form == "words changed":
        vocabulary = sorted({one.strip() for one in pieces_of(text) if one.strip().isalnum()}) or [
            "other",
            "another",
        ]
        draw.shuffle(vocabulary)
        question = change_words(question, vocabulary, draw)
        piece = question + change_words(piece[len(item.question) :], vocabulary, draw)
    elif form == "first half":
        piece = question = first_half(question)
    elif form == "answer alone":
        piece = question = item.answer or ""
    elif form == "entities":
        question = forms.escape(question)
        piece = forms.escape(piece)
    elif form == "rendered":
        question = forms.render(question)
        piece = forms.render(piece)
    elif form == "renamed":
        piece = question = forms.rename(written(item, whole=True))
    middle = (
        len(text) // 2 if form == "long document" else draw.randrange(len(text) // 10, len(text))
    )
    own = form in ("paragraph", "separated", "rendered") or item.kind == "code"
    cut = text.rfind("\n" if own else " ", 0, middle) + 1
    before = text[:cut].rstrip()
    after = text[cut:].lstrip()
    between = "\n\n" if own else "" if item.kind == "Chinese" else " "
    if form == "separated":
        cut = after.find("\n", draw.randrange(600, 2000))
        after = f"{after[:cut]}\n\n{answer_part(item)}\n\n{after[cut:]}"
    if form == "wrapped":
        size = 20 if item.kind == "Chinese" else 8
        before = wrap(before, size)
        after = wrap(after, size)
        whole_piece = wrap(piece, size)
        end = len(wrap(question, size)) if whole else len(whole_piece)
        piece = whole_piece
        question = whole_piece[:end]
        between = "\n"
    head = before + between
    start = len(head)
    row = {
        "item_id": item.id,
        "form": form,
        "kind": item.kind,
        "start": start,
        "end": start + len(piece),
    }
    row |= {"question_start": start, "question_end": start + len(question)}
    return Document("", head + piece + between + after, [row])


def hard_documents(family: str, haystack: Haystack, exams: list[Item]) -> Iterator[Document]:
    """Yield documents that contain the common text of a family."""
    common, kind = FAMILIES[family]
    for number in range(max(HARD_DOCUMENTS, 20 * len(common))):
        text = haystack.text(kind, haystack.draw.randrange(150, 900))
        cut = text.rfind("\n", 0, haystack.draw.randrange(len(text))) + 1
        after = answer_part(haystack.draw.choice(exams)) if side_of(kind) == "English" else ""
        yield Document("", f"{text[:cut]}\n{common[number % len(common)]}\n{after}\n{text[cut:]}")


def hard_items(family: str, own: list[Item]) -> Iterator[Item]:
    """Yield items that begin with the common text of a family; the rest is in no document."""
    common, kind = FAMILIES[family]
    for number, one in enumerate(own):
        text = common[number % len(common)]
        stem_only = family == "stem"
        question = text if stem_only else f"{text}\n{one.question}"
        yield Item(
            f"hard-{family}-{number}",
            kind,
            f"hard {family}",
            question,
            one.choices,
            one.answer,
            role=family,
        )


# The whole.


def ungroup(items: list[Item]) -> list[Item]:
    """Return the items without those that share a third of their shingles with an earlier one."""
    holders = defaultdict(set)
    kept = []
    for item in items:
        shingles = shingles_of(item.question)
        shared = Counter(holder for one in shingles for holder in holders[one])
        if not shared or shared.most_common(1)[0][1] < len(shingles) / 3:
            kept.append(item)
        for one in shingles:
            holders[one].add(item.id)
    return kept


_PARTS = (lambda item: item.question, lambda item: written(item, whole=True))


def find_related(items: list[Item], documents: list[Document]) -> list[dict]:
    """Return the pairs that share text by nature: a third of the rare shingles of a question, or of
    all of an item.

    Rare are those of fewer than ten documents. Of code a seventh: functions of one library describe
    themselves alike.
    """
    wanted = {(item.id, part): shingles_of(part(item)) for item in items for part in _PARTS}
    share = {item.id: _RELATED_CODE if item.kind == "code" else _RELATED for item in items}
    holders = defaultdict(list)
    for key, shingles in wanted.items():
        for one in shingles:
            holders[one].append(key)
    in_documents = [
        [one for one in shingles_of(html.unescape(document.text)) if one in holders]
        for document in documents
    ]
    frequency = Counter(one for found in in_documents for one in found)
    rare = {
        key: sum(frequency[one] < _COMMON for one in shingles) for key, shingles in wanted.items()
    }
    rows = []
    for document, found in zip(documents, in_documents, strict=True):
        placed = {row["item_id"] for row in document.spans}
        shared = Counter(key for one in found if frequency[one] < _COMMON for key in holders[one])
        names = {key[0] for key, count in shared.items() if count >= share[key[0]] * rare[key]}
        rows += [
            {"item_id": name, "document_id": document.id, "form": "related"}
            for name in sorted(names - placed)
        ]
    return rows


def choose_planted(pool: list[Item], per_form: int) -> list[tuple[Item, str]]:
    """Return items with their forms, as many of each kind, and mark them as planted.

    A half that is quoted is an item's own: most of its shingles are in no other item.
    """
    frequency = Counter(one for item in pool for one in shingles_of(item.question))
    by_kind = {kind: [item for item in pool if item.kind == kind] for kind in KINDS}
    planted = []
    per_kind = per_form // len(KINDS)
    for form in sorted(FORMS, key="first half".__ne__):  # it asks the most of an item
        for kind in KINDS_OF_FORM.get(form, KINDS):
            fits = by_kind[kind]
            if form == "first half":
                fits = [item for item in fits if len(tokens_of(item.question)) >= _LEAST_HALVED]
                halves = {item.id: shingles_of(first_half(item.question)) for item in fits}
                own = {
                    name: sum(frequency[one] == 1 for one in shingles)
                    for name, shingles in halves.items()
                }
                fits = [item for item in fits if own[item.id] > len(halves[item.id]) / 2]
            if form == "separated":
                fits = [item for item in fits if answer_part(item)]
            if form == "rendered":
                fits = [item for item in fits if re.search(r"[\\^$]", item.question)]
            if form in ("answer alone", "renamed"):
                fits = [item for item in fits if len(tokens_of(item.answer or "")) >= _MIN_SOLUTION]
            if len(fits) < per_kind:
                raise ValueError(
                    f"{len(fits)} items of kind {kind!r} are left for form {form!r}: need "
                    f"{per_kind}"
                )
            for item in fits[:per_kind]:
                item.role = "planted"
                by_kind[kind].remove(item)
                planted.append((item, form))
    return planted


def choose_hard(clean: list[Item], size: int) -> list[Item]:
    """Return the items of all families; their own text is that of clean items, which are taken
    out.
    """
    pools = defaultdict(list)
    hard = []
    for item in clean:
        pools[side_of(item.kind)].append(item)
    for family, (_, kind) in FAMILIES.items():
        taken = [pools[side_of(kind)].pop(0) for _ in range(size)]
        hard += hard_items(family, taken)
        for item in taken:
            clean.remove(item)
    return hard


def build(
    data: Path, seed: int, per_form: int = PER_FORM
) -> tuple[list[Item], list[Document], list[dict]]:
    """Return the items, the documents and the rows of the truth."""
    draw = random.Random(seed)
    library = Path(sysconfig.get_path("stdlib"))
    scale = per_form / PER_FORM
    pool = exam_items(data) + list(code_items(library)) + list(chinese_items(data))
    draw.shuffle(pool)
    pool = ungroup(pool)
    planted = choose_planted(pool, per_form)
    rest = [item for item in pool if item.role == "clean"]
    num_clean = max(_MIN_CLEAN, round(CLEAN_ITEMS * scale))
    clean = rest[:num_clean]
    rest = rest[num_clean:]
    hard = choose_hard(clean, max(3, round(HARD_ITEMS * scale)))
    exams = [item for item in rest if side_of(item.kind) == "English"]
    haystack = Haystack(data, library, exams[100:], draw)
    documents = [
        one for family in FAMILIES for one in hard_documents(family, haystack, exams[:100])
    ]
    documents += [
        place(item, form, number, haystack) for number, (item, form) in enumerate(planted)
    ]
    for number in range(round(CLEAN_DOCUMENTS * scale)):
        documents.append(
            Document("", haystack.text(KINDS[number % len(KINDS)], draw.randrange(200, 1500)))
        )
    draw.shuffle(documents)
    for number, document in enumerate(documents):
        document.id = f"document-{number}"
    items = [item for item, _ in planted]
    related = find_related(items + clean + hard, documents)
    unclean = {row["item_id"] for row in related}
    items += [item for item in clean + hard if item.id not in unclean]
    draw.shuffle(items)
    known = {item.id for item in items}
    truth = [row | {"document_id": document.id} for document in documents for row in document.spans]
    return items, documents, truth + [row for row in related if row["item_id"] in known]


TRUTH = pa.schema(
    [(name, pa.string()) for name in ("item_id", "document_id", "form", "kind")]
    + [(name, pa.int64()) for name in ("start", "end", "question_start", "question_end")]
)


def write(out: Path, items: list[Item], documents: list[Document], truth: list[dict]) -> None:
    """Write the three files."""
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "items.jsonl", "w", encoding="utf-8") as file:
        for item in items:
            row = {
                "id": item.id,
                "question": item.question,
                "choices": item.choices,
                "answer": item.answer,
            }
            row |= {"task": item.task, "kind": item.kind, "role": item.role}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    columns = {"id": [one.id for one in documents], "text": [one.text for one in documents]}
    pq.write_table(pa.table(columns), out / "corpus.parquet", row_group_size=1000)
    pq.write_table(pa.Table.from_pylist(truth, TRUTH), out / "truth.parquet")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the files")
    parser.add_argument("--data", type=Path, default=SHARED, help="the real texts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--per-form", type=int, default=PER_FORM, help="items in each form, a multiple of 5"
    )
    args = parser.parse_args(arguments)
    items, documents, truth = build(args.data, args.seed, args.per_form)
    write(args.out, items, documents, truth)
    roles = Counter("hard" if one.role in FAMILIES else one.role for one in items)
    size = sum(len(one.text.encode()) for one in documents) / 1e6
    related = sum(row["form"] == "related" for row in truth)
    print(
        f"{dict(roles)} items, {len(documents):,} documents of {size:.1f} MB, {related} related "
        "pairs"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
