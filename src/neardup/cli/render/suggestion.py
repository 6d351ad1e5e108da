"""Print the grades and the settings of a sweep with their pairs, and ask about pairs in the
terminal.
"""

from __future__ import annotations

import click
from rich.console import Console
from rich.text import Text

from neardup.cli.render.compare import Marks, print_differences
from neardup.cli.render.table import is_plain, is_unicode
from neardup.report.items import MarkedPair
from neardup.report.wording import say, translated, visible
from neardup.suggestion import Grades, Suggestion, SweepPair

_ANSWERS = {"y": True, "n": False, "s": None}


def print_grades(grades: Grades) -> None:
    """Print the pairs on both sides of each grade, and then the counts of both."""
    console = Console(highlight=False, markup=False)
    for grade in grades:
        for key, pairs in (("sweep.above", grade.above), ("sweep.below", grade.below)):
            if pairs:
                title = say(key, grade=say(f"sweep.{grade.name}"))
                console.print(Text(f"\n{title}", "bold"))
            for pair in pairs:
                print_pair(pair, console, brief=True)
    console.print(Text(f"\n{say('sweep.grades')}", "bold"))
    for grade in grades:
        console.print(f"  {translated(str(grade))}", soft_wrap=True)
        console.print(f"    {translated(grade.explanation)}", soft_wrap=True)
    console.print(f"  {say('sweep.write_grade')}", soft_wrap=True)


def print_suggestion(suggestion: Suggestion) -> None:
    """Print the settings and the reason."""
    console = Console(highlight=False, markup=False)
    method = suggestion.method
    options = f"--ngram {method.ngram} --threshold {method.threshold:g}"
    key = "sweep.suggestion" if suggestion.changes else "sweep.keep"
    console.print(Text(f"\n{say(key, options=options)}", "bold"))
    console.print(f"  {translated(suggestion.reason)}", soft_wrap=True)
    if not suggestion.changes and suggestion.clearest is not None:
        console.print(f"  {say('sweep.by_answers')}")


def print_pair(pair: SweepPair, console: Console, *, brief: bool = False) -> None:
    """Print two documents with their differences marked.

    brief : print the first differences only.
    """
    title = say("sweep.similarity", similarity=pair.similarity)
    names = (visible(pair.left_id), visible(pair.right_id))
    print_example(title, pair.pair, names, console, brief=brief)


def print_example(
    title: str, pair: MarkedPair, names: tuple[str, str], console: Console, *, brief: bool
) -> None:
    """Print two texts with their differences marked, below a title.

    names : of the two texts. brief : print the first differences only.
    """
    console.print(Text(f"\n{title}", "bold"))
    if pair.truncated:
        console.print(Text(f"  {say('sweep.truncated')}", "dim"))
    marks = Marks(is_plain(console), is_unicode(console), full=False)
    print_differences(pair, names, marks, console, brief=brief)


def ask(pair: SweepPair) -> bool | None:
    """Ask about a pair on stderr; return the answer, None to skip.

    Raises StopIteration if the user ends the questions.
    """
    console = Console(stderr=True, highlight=False)
    print_pair(pair, console)
    if pair.again:
        console.print(Text(f"  {say('sweep.again')}", "dim"))
    colon = say("words.colon")
    while True:
        try:
            typed = click.prompt(say("sweep.question"), err=True, prompt_suffix=colon)
        except click.Abort:  # the end of the input, or Ctrl-C: the answers so far count
            typed = "q"
        key = typed.strip().lower()
        if key == "q":
            # As `next` of a generator would: `Sweep.ask` takes the answers so far.
            raise StopIteration
        if key in _ANSWERS:
            return _ANSWERS[key]
        click.echo(say("sweep.answers", key=key), err=True)
