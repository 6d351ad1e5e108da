"""Does my training corpus contain questions of the test set?

Four questions are looked for in the terms of service of examples/data: one is quoted in a text, one
with other words, and one has only an introduction in common with many texts.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import neardup

DATA = Path(__file__).parent / "data"
QUESTIONS = [
    (
        "Which planet of the solar system has the shortest year, and how many days of the Earth "
        "does it last?"
    ),
    (
        "A farmer has seventeen sheep, and all but nine of them die in the winter: how many sheep "
        "are left?"
    ),
    (
        "By using this website you agree to be bound by these terms. Who wrote the first program "
        "for a computer?"
    ),
    (
        "What is the name of the longest river that flows only through one country of the European "
        "Union?"
    ),
]


def corpus() -> pa.Table:
    """Return the texts, with two questions in the middle of them."""
    dictionary = neardup.dedup(DATA / "terms-old.jsonl.zst").kept
    texts = dictionary["text"].to_pylist()
    middle = len(texts[3]) // 2
    texts[3] = f"{texts[3][:middle]}\n{QUESTIONS[0]}\n{texts[3][middle:]}"
    texts[8] = f"{texts[8]} {QUESTIONS[1].replace('farmer', 'shepherd').replace('winter', 'storm')}"
    return pa.table({"id": dictionary["id"], "text": texts})


def main() -> None:
    """Print what was found of each question, and where."""
    texts = corpus()
    found = neardup.find_contamination(QUESTIONS, texts)
    print(found)
    for hit in found.hits.to_pylist():
        text = texts["text"][hit["row"]].as_py()
        print(
            f"\nquestion {hit['item_id']} in {hit['document_id']}, containment "
            f"{hit['containment']:.2f}"
        )
        print(f"  {text[hit['start'] : hit['end']]}")
        if hit["missing"]:
            print(f"  without: {hit['missing']}")
    print("\nstate of each question:", ", ".join(found.items["status"].to_pylist()))


if __name__ == "__main__":
    main()
