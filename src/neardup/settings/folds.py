"""The spellings of languages that are treated as one."""

from __future__ import annotations

from neardup.settings.constraints import Constraint

FOLDS = (
    "chinese",
    "arabic",
    "hebrew",
    "greek",
    "turkish",
    "vietnamese",
    "german",
    "hyphens",
)
FOLD = Constraint(
    "Spellings to treat as one, by commas or repeated: traditional and simplified Chinese "
    "(chinese); text without vowel marks, with one alef, yeh, kaf and heh (arabic), without points "
    "(hebrew) or accents (greek); the four letters i (turkish); hòa and hoà (vietnamese); ä and ae "
    "(german); words divided at line ends (hyphens).",
    tuple,
    choices=FOLDS,
)
