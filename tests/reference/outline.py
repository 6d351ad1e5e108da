"""The folding of an outline, by recursion over the tree; what two outlines share, by the table of
lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby


class Node:
    """An element with what is inside."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.inside: list[Node] = []

    def shape(self) -> tuple:
        """Return the label and the shapes inside, repeated ones once."""
        return self.label, tuple(
            shape for shape, _ in groupby(node.shape() for node in self.inside)
        )


def fold(labels: Sequence[str], depths: Sequence[int]) -> list[tuple[str, int, int]]:
    """Return (label, depth, repeats) for each line, from elements in document order."""
    root = Node("")
    path = [root]
    for label, depth in zip(labels, depths, strict=True):
        node = Node(label)
        del path[depth + 1 :]
        path[depth].inside.append(node)
        path.append(node)
    return _lines(root, 0)


def _lines(parent: Node, depth: int) -> list[tuple[str, int, int]]:
    lines = []
    for _, run in groupby(parent.inside, Node.shape):
        nodes = list(run)
        lines += [(nodes[0].label, depth, len(nodes)), *_lines(nodes[0], depth + 1)]
    return lines


def common_length(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the length of the longest common subsequence."""
    lengths = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            longest = max(lengths[i][j + 1], lengths[i + 1][j])
            lengths[i + 1][j + 1] = lengths[i][j] + 1 if one == other else longest
    return lengths[-1][-1]
