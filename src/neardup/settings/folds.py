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
    "Spellings to treat as one, by commas or repeated: traditional as simplified Chinese "
    "(chinese), text without vowel marks and with one alef, yeh, kaf and heh (arabic), without "
    "points (hebrew), without accents (greek), the four letters i (turkish), h\u00f2a as "
    "ho\u00e0 (vietnamese), \u00e4 as ae (german), and words divided at the ends of lines "
    "(hyphens).",
    tuple,
    choices=FOLDS,
)
