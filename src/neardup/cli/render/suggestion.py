"""Print the settings that a sweep suggests with their pairs, and ask about pairs in the terminal."""

from __future__ import annotations

import click
from rich.console import Console
from rich.text import Text

from neardup.cli.render.compare import Marks, print_differences
from neardup.cli.render.table import is_plain, is_unicode
from neardup.report.wording import plural, visible
from neardup.suggestion import Suggestion, SweepPair

_ANSWERS = {"y": True, "n": False, "s": None}


def print_suggestion(suggestion: Suggestion, console: Console | None = None) -> None:
    """Print the settings, the reason, and the pairs that show the difference."""
    console = console or Console(highlight=False)
    method = suggestion.method
    options = f"--ngram {method.ngram} --threshold {method.threshold:g}"
    console.print(Text(f"\n{'Suggestion' if suggestion.changes else 'Keep'}: {options}", "bold"))
    console.print(f"  {suggestion.reason}", soft_wrap=True)
    if not suggestion.changes:
        if suggestion.clearest is not None:
            console.print("  To decide by answers about 27 pairs, add --ask 27.")
        return
    for title, pairs in (
        (f"{plural(len(suggestion.added), 'pair')} that the given settings do not find", suggestion.added),
        ("Closest to the threshold, from above", suggestion.above),
        ("Closest to the threshold, from below", suggestion.below),
    ):
        if pairs:
            console.print(Text(f"\n{title}", "bold"))
        for pair in pairs:
            print_pair(pair, console)


def print_pair(pair: SweepPair, console: Console) -> None:
    """Print two documents with their differences marked."""
    console.print(Text(f"\nSimilarity {pair.similarity:.4f}", "bold"))
    if pair.pair.truncated:
        console.print(Text("  Long texts: only the beginning of each is compared here.", "dim"))
    marks = Marks(is_plain(console), is_unicode(console), full=False)
    print_differences(pair.pair, (visible(pair.left_id), visible(pair.right_id)), marks, console)


def ask(pair: SweepPair) -> bool | None:
    """Ask about a pair on stderr; return the answer, None to skip. Raises StopIteration if there are no more."""
    print_pair(pair, Console(stderr=True, highlight=False))
    while True:
        try:
            key = click.prompt("Duplicates? y, n, s to skip, q to end", err=True).strip().lower()
        except click.Abort:  # the end of the input, or Ctrl-C: what was answered counts
            key = "q"
        if key == "q":
            raise StopIteration
        if key in _ANSWERS:
            return _ANSWERS[key]
        click.echo(f"An answer is y, n, s or q: got {key!r}.", err=True)
