"""Texts that many documents contain, and that test items contain too: ten families of hard
negatives.
"""

from __future__ import annotations

_GETTYSBURG = (
    "Four score and seven years ago our fathers brought forth on this continent, a new nation, "
    "conceived in Liberty, and dedicated to the proposition that all men are created equal. Now we "
    "are engaged in a great civil war, testing whether that nation, or any nation so conceived and "
    "so dedicated, can long endure. We are met on a great battle-field of that war."
)
_LICENCE = (
    "Permission is hereby granted, free of charge, to any person obtaining a copy of this "
    "software and associated"
    ' documentation files (the "Software"), to deal in the Software without restriction, '
    "including without "
    "limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, "
    "and/or sell copies of "
    "the Software, and to permit persons to whom the Software is furnished to do so."
)
_TRUTH_TABLE = (
    "Use indirect truth tables to determine whether each argument is valid. If the argument is "
    "invalid, choose an option which presents a counterexample. (There may be other "
    "counterexamples as well.)"
)
_COOKIES = (
    "This website uses cookies to improve your experience while you navigate through the website. "
    "Out of these, the cookies that are categorized as necessary are stored on your browser as "
    "they are essential for the working of basic functionalities of the website."
)
_VERSES = (
    "For God so loved the world, that he gave his only begotten Son, that whosoever believeth in "
    "him should not perish, but have everlasting life.",
    "To be, or not to be, that is the question: Whether 'tis nobler in the mind to suffer the "
    "slings and arrows of outrageous fortune, or to take arms against a sea of troubles, and by "
    "opposing end them.",
)
_HEADER = (
    "#!/usr/bin/env python3\n"
    "# -*- coding: utf-8 -*-\n"
    '# Licensed under the Apache License, Version 2.0 (the "License");\n'
    "# you may not use this file except in compliance with the License.\n"
    "\n"
    "from __future__ import annotations\n"
    "\n"
    "import argparse\n"
    "import json\n"
    "import logging\n"
    "import os\n"
    "import re\n"
    "import sys\n"
    "from pathlib import Path\n"
    "\n"
    "logger = logging.getLogger(__name__)\n"
)
_EXAM = (
    "Directions: Read the passage below and then answer the questions that follow it. For each "
    "question there are four choices marked A, B, C and D. Choose the one that best answers the "
    "question, and mark the corresponding letter on the answer sheet with a single line through "
    "the centre."
)
_CHINESE = (
    "阅读下面的文字，完成下列各题。请在答题卡上作答，写在试卷上无效。下列各项中，只有一项是符合题目要求的。",
    "本大题共十二小题，每小题五分，共六十分。在每小题给出的四个选项中，只有一项是符合题目要求的。",
)
_MATHEMATICS = (
    "Let R be the set of real numbers. Find all functions f from R to R such that, for all real "
    "numbers x and y, the following equation holds.",
    "Express your answer as a common fraction in lowest terms, or as an exact value in simplest "
    "radical form if it is not rational.",
)
_STEMS = (
    "Which of the following statements is true?",
    "Which one of the following statements, if true, most seriously weakens the argument above?",
    "All of the following statements are true EXCEPT",
    "Which of the following best describes the relationship between the two passages?",
)

FAMILIES: dict[str, tuple[tuple[str, ...], str]] = {
    "address": ((_GETTYSBURG,), "long"),
    "licence": ((_LICENCE,), "long"),
    "truth table": ((_TRUTH_TABLE,), "short"),
    "stem": (_STEMS, "short"),
    "cookies": ((_COOKIES,), "long"),
    "quotation": (_VERSES, "long"),
    "header": ((_HEADER,), "code"),
    "instruction": ((_EXAM,), "long"),
    "Chinese instruction": (_CHINESE, "Chinese"),
    "mathematics": (_MATHEMATICS, "mathematics"),
}
"""By name: the texts, and the kind of document that contains them."""
