"""Build ``src/neardup/kernels/grapheme_classes.npz``, by which cuts end between characters as
readers see them.

``unicodedata`` does not have the property ``Grapheme_Cluster_Break``. The PyPI package ``regex``
has it, with the Unicode version that its description names. Run this with a Python that has
``regex`` and NumPy::

    python tools/build_grapheme_table.py

It also writes ``tests/data/grapheme_clusters.txt``: texts, and where ``\\X`` of ``regex`` divides
them. The same versions give the same bytes.
"""

from __future__ import annotations

import random
import re
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import numpy as np
import regex

NUM_CODE_POINTS = 0x110000
ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src" / "neardup" / "kernels" / "grapheme_classes.npz"
EXAMPLES = ROOT / "tests" / "data" / "grapheme_clusters.txt"

# The classes in the order of their numbers, from 1 on, as in src/neardup/kernels/graphemes.py. A
# code point that has several of these properties is of the last class.
CLASSES = {
    "pictograph": r"\p{Extended_Pictographic}",
    "consonant": r"\p{InCB=Consonant}",
    "cr": r"\p{GCB=CR}",
    "lf": r"\p{GCB=LF}",
    "control": r"\p{GCB=Control}",
    "extend": r"\p{GCB=Extend}",
    "non_joiner": r"[\p{GCB=Extend}--[\p{InCB=Extend}\p{InCB=Linker}]]",
    "linker": r"[\p{GCB=Extend}&&\p{InCB=Linker}]",
    "joiner": r"\p{GCB=ZWJ}",
    # A few vowel signs and tone marks of Burmese and Tai Tham are left out of SpacingMark, since
    # they are written beside their letter. Readers do not take them for characters, so no cut
    # begins with them either.
    "spacing": r"[\p{GCB=SpacingMark}[\p{GCB=Other}&&\p{M}]]",
    "prepend": r"\p{GCB=Prepend}",
    "linker_letter": r"[\p{GCB=Other}&&\p{InCB=Linker}]",
    "flag": r"\p{GCB=Regional_Indicator}",
    "leading": r"\p{GCB=L}",
    "vowel": r"\p{GCB=V}",
    "trailing": r"\p{GCB=T}",
    "open_syllable": r"\p{GCB=LV}",
    "closed_syllable": r"\p{GCB=LVT}",
}
# Marks that begin a cluster of \X, and none of ours.
BESIDE = regex.compile(r"[\p{GCB=Other}&&\p{M}]", regex.VERSION1)
NUM_EXAMPLES = 800


def read_classes() -> np.ndarray:
    """Return the class of each code point; 0 for all others."""
    characters = "".join(map(chr, range(NUM_CODE_POINTS)))
    classes = np.zeros(NUM_CODE_POINTS, np.uint8)
    for number, pattern in enumerate(CLASSES.values(), start=1):
        found = regex.compile(pattern, regex.VERSION1).finditer(characters)
        places = [match.start() for match in found]
        if not places:
            raise SystemExit(
                f"No code point has {pattern}: the rules of this version of Unicode are others."
            )
        classes[places] = number
    return classes


def unicode_version() -> str:
    """Return the version of Unicode that the package names, such as ``"18.0.0"``."""
    package: Any = metadata("regex")
    description = package.get_payload() or package["Description"]
    found = re.search(r"supports Unicode (\d+\.\d+\.\d+)", str(description))
    if found is None:
        raise SystemExit("The description of the package regex does not name a version of Unicode.")
    return found[1]


def make_examples(classes: np.ndarray) -> list[str]:
    """Return lines such as ``÷ 0915 × 094D × 0937 ÷ 0061 ÷``: code points of all classes in random
    order.
    """
    chance = random.Random(29)
    members = [np.flatnonzero(classes == number).tolist() for number in range(len(CLASSES) + 1)]
    members[0] = [0x20, 0x61, 0x416, 0x4E2D, 0xE01, 0xE02]
    lines = []
    while len(lines) < NUM_EXAMPLES:
        kinds = chance.sample(range(len(members)), k=chance.choice([2, 3, 4]))
        codes = [
            chance.choice(members[chance.choice(kinds)]) for _ in range(chance.randrange(2, 9))
        ]
        text = "".join(map(chr, codes))
        if any(0xD800 <= code < 0xE000 for code in codes) or BESIDE.search(text):
            continue
        divides = {match.start() for match in regex.finditer(r"\X", text)}
        marked = [
            f"{'÷' if place in divides else '×'} {code:04X}" for place, code in enumerate(codes)
        ]
        lines.append(" ".join([*marked, "÷"]))
    return lines


def main() -> None:
    """Write both files, and say what is in them."""
    version = unicode_version()
    classes = read_classes()
    starts = np.flatnonzero(np.diff(classes, prepend=255))
    np.savez_compressed(
        TABLE,
        unicode_version=np.array([int(part) for part in version.split(".")], np.uint8),
        names=np.array(["other", *CLASSES]),
        starts=starts.astype(np.uint32),
        classes=classes[starts],
    )
    source = (
        f"# Made by tools/build_grapheme_table.py with regex {metadata('regex')['Version']}, "
        f"Unicode {version}."
    )
    EXAMPLES.write_text("\n".join([source, *make_examples(classes), ""]), encoding="utf-8")
    print(f"{TABLE}: {TABLE.stat().st_size} bytes, {len(starts)} ranges, Unicode {version}")


if __name__ == "__main__":
    main()
