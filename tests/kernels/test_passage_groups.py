"""The hashed text around an anchor is the same, whether it is hashed anew or taken from before."""

from __future__ import annotations

import random

import numpy as np
import pytest

from neardup.kernels import passage_groups
from neardup.kernels.passages import Pieces

LENGTH = 64
SIZE = 32
PERIOD = 8


def letters(draw: random.Random, count: int) -> str:
    return "".join(draw.choices("abcdefghij", k=count))


@pytest.mark.parametrize("seed", range(40))
def test_a_period_before_a_gap_says_nothing_about_the_text_after_it(seed):
    """Anchors at equal distances share their context only if no anchor between is left out."""
    draw = random.Random(seed)
    unit = letters(draw, PERIOD)
    middle = letters(draw, draw.randrange(20, 60))
    # Writable, as in a run, for which the kernel is compiled anyway.
    text = np.frombuffer(bytearray((unit * 20 + middle + unit * 20).encode()), np.uint8)
    after = len(unit * 20) + len(middle) + SIZE // 2
    positions = np.array([80, 80 + PERIOD, 160 + len(middle) // 2, after, after + PERIOD])
    is_hashed = np.array([True, True, False, True, True])

    def contexts_of(positions: np.ndarray, is_hashed: np.ndarray) -> np.ndarray:
        pieces = Pieces(
            text=text,
            starts=np.array([0, len(text)]),
            anchors=np.array([len(positions)]),
            **{
                name: np.zeros(1, np.uint8 if name == "bounded" else np.int64)
                for name in Pieces._fields
                if name not in ("text", "starts", "anchors")
            },
        )
        contexts = np.zeros((len(positions), 2), np.uint64)
        passage_groups.hash_around(pieces, (0, 1), positions, is_hashed, LENGTH, SIZE, contexts)
        return contexts

    alone = [contexts_of(positions[[i]], is_hashed[[i]])[0] for i in range(len(positions))]
    assert contexts_of(positions, is_hashed).tolist() == np.array(alone).tolist()
