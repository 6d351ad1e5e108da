"""Make texts with errors, as OCR and typing make them, and passages that have nothing to do with
each other.

    python tools/noisy_texts.py 5% < clean.txt > noisy.txt

The errors are simulated: 60 % of them are substitutions by characters of a similar shape, 15 %
deletions, 15 % insertions, and 10 % spaces that are lost or added. A character without a look-alike
in the table becomes one drawn from the same text. Seeds are fixed: two runs make the same texts.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator
from itertools import combinations

# the others are spaces
SUBSTITUTIONS = 0.6
DELETIONS = 0.15
INSERTIONS = 0.15
LIKE_LETTERS = (
    *(
        "0oO",
        "1lIi|",
        "2zZ",
        "5sS",
        "6bG",
        "8B",
        "9gq",
        "ceo",
        "bh",
        "nu",
        "ao",
        "ft",
        "fs",
        "vy",
        "hn",
        "ij",
        "rt",
    ),
    *("EF", "CG", "DO", "PR", "UV", "MN", "KX", "QO", ".,", ":;", "'`", "-~"),
)
LIKE_CHINESE = (
    *(
        "己已巳",
        "未末",
        "日曰目",
        "土士",
        "人入八",
        "大太犬",
        "干千于",
        "王玉主",
        "天夫",
        "木本",
        "鸟乌",
        "免兔",
        "刀力",
    ),
    *(
        "贝见",
        "午牛",
        "田由甲申",
        "今令",
        "问间",
        "农衣",
        "代伐",
        "治冶",
        "折拆",
        "住往佳",
        "候侯",
        "第弟",
        "特持待",
    ),
    *(
        "规现",
        "定宝",
        "请清情",
        "条务",
        "的旳",
        "法去",
        "机杌",
        "政故",
        "关并",
        "行竹",
        "应庆",
        "及乃",
        "门们",
        "部陪",
    ),
)
LIKE_PAIRS = (("rn", "m"), ("cl", "d"), ("vv", "w"), ("ii", "u"), ("fi", "ﬁ"), ("fl", "ﬂ"))


def similar_characters() -> dict[str, list[str]]:
    """Return for each character, or pair of characters, those that it is mistaken for."""
    similar: dict[str, list[str]] = {}
    for group in (*LIKE_LETTERS, *LIKE_CHINESE, *LIKE_PAIRS):
        for one, other in combinations(group, 2):
            similar.setdefault(one, []).append(other)
            similar.setdefault(other, []).append(one)
    return similar


SIMILAR = similar_characters()


def with_errors(text: str, share: float, draw: random.Random) -> str:
    """Return a text in which each character is wrong with a probability of `share`,
    independently.
    """
    written: list[str] = []
    position = 0
    while position < len(text):
        if draw.random() >= share:
            written.append(text[position])
            position += 1
            continue
        kind = draw.random()
        pair = text[position : position + 2]
        if kind < SUBSTITUTIONS:
            whole = pair if pair in SIMILAR and draw.random() < 0.5 else text[position]
            written.append(draw.choice(SIMILAR.get(whole) or text))
            position += len(whole)
        elif kind < SUBSTITUTIONS + DELETIONS:
            position += 1
        elif kind < SUBSTITUTIONS + DELETIONS + INSERTIONS:
            written += text[position], draw.choice(text)
            position += 1
        else:  # a space is lost where there is one, and added elsewhere
            written += [] if text[position].isspace() else [text[position], " "]
            position += 1
    return "".join(written)


def passages(
    texts: Iterable[str], shortest: int, longest: int, draw: random.Random
) -> Iterator[str]:
    """Cut texts into passages of so many characters, their logarithms drawn evenly; what is left
    over is dropped.
    """
    for text in texts:
        position = 0
        while True:
            length = round(shortest * (longest / shortest) ** draw.random())
            if position + length > len(text):
                break
            yield text[position : position + length]
            position += length


if __name__ == "__main__":
    number = sys.argv[1].removesuffix("%")
    percent = sys.argv[1].endswith("%")
    share = float(number) / (100 if percent else 1)
    sys.stdout.write(with_errors(sys.stdin.read(), share, random.Random(1)))
