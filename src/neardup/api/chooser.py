"""Choose settings for a collection from its pairs: by their graph, or by answers about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neardup.api.answer_files import AskedPair, append_line, line_of, read_answers
from neardup.api.grades import Drawn
from neardup.arrays import Floats, Mask
from neardup.decide.outcome import Pairs
from neardup.documents.batch import Corpus
from neardup.errors import InputError
from neardup.formats.reading import Task
from neardup.output.tables import check_output
from neardup.output.write import read_texts
from neardup.report.items import Marker
from neardup.report.questions_html import Question
from neardup.report.wording import plural
from neardup.schemas import SIMILARITY
from neardup.settings.constraints import check_kind, check_limit
from neardup.settings.methods import MinHash
from neardup.settings.run import MIN_PRECISION
from neardup.suggestion import Suggestion, SweepPair
from neardup.verify import asking, choosing

Ask = Callable[[SweepPair], bool | None]
"""Return whether two documents are duplicates, None if that is unknown."""


Answers = dict[int, bool]
"""The answers by the row of their pair in the pool."""


class _Progress(NamedTuple):
    """The answers so far, and the rows of the pool that were not asked about."""

    answers: Answers
    waiting: list[int]


@dataclass(frozen=True)
class Chooser:
    """The pairs of a collection, from which settings are chosen.

    given : the settings of the sweep. loosest : the settings of the search, which finds most pairs.
    pool : the pairs that may be asked about, in order. sample : their similarities.
    """

    tasks: list[Task]
    corpus: Corpus
    given: MinHash
    loosest: MinHash
    sample: asking.Sample
    pool: list[Drawn]

    def _unchanged(self, reason: str, **others: Any) -> Suggestion:
        return Suggestion(self.given, changes=False, reason=reason, **others)

    def suggest(self, pairs: Pairs, *, hidden: int) -> Suggestion:
        """Return the settings that the graph of the pairs suggests.

        hidden : the number of documents that were not compared with all others.
        """
        if hidden:
            return self._unchanged(
                f"Too many documents are similar: {hidden:,} were not all compared."
            )
        similarity = similarities_of(pairs)
        levels = choosing.levels_of(pairs.left, pairs.right, similarity, self.corpus.num_documents)
        if not levels:
            return self._unchanged(
                "Each threshold finds no pair, or more than a tenth of all pairs."
            )
        level = max(reversed(levels), key=attrgetter("score"))  # of equal ones, the strictest
        chosen = replace(self.given, ngram=self.loosest.ngram, threshold=level.threshold)
        shingles = plural(self.loosest.ngram, "word")
        clearest = f"Shingles of {shingles} separate groups best at {level.threshold:g}"
        doubts = level.doubts(levels)
        if doubts is not None:
            reason = f"The texts do not decide. {clearest}, but {doubts}."
            return self._unchanged(reason, clearest=chosen, levels=levels)
        stricter = level.threshold + choosing.STEP
        reason = (
            f"{clearest}: {level.documents:,} documents have a neighbour, two neighbours have "
            f"{level.agreement * 100:.1f} % of their neighbours in common, and "
            f"{level.stability * 100:.1f} % of the pairs remain at {stricter:.2f}."
        )
        return Suggestion(chosen, changes=True, reason=reason, clearest=chosen, levels=levels)

    def questions(self, count: int, file: Path | None) -> tuple[list[Question], int]:
        """Return the lines and the texts of pairs to ask about, and the number of answers in the
        file.
        """
        answers, waiting = self._begin(count, file)
        pairs = [self.pool[row] for row in waiting[: max(0, count - len(answers))]]
        lines = [line_of(self._asked_pair(pair), None) for pair in pairs]
        marked = [shown.pair for shown in self._mark(pairs)]
        return list(zip(lines, marked, strict=True)), len(answers)

    def ask(self, answer: Ask, count: int, file: Path | None, min_precision: float) -> Suggestion:
        """Ask until there are enough answers, and again if they contradict each other; return
        the settings that they favour.
        """
        check_kind("answer", answer, Callable, "a function")
        min_precision = MIN_PRECISION.check("min_precision", min_precision)
        answers, waiting = self._begin(count, file)
        with suppress(StopIteration):  # the caller wants no more questions
            while rows := self._next(answers, waiting, count):
                waiting = [row for row in waiting if row not in rows]
                pairs = [self.pool[row] for row in rows]
                marked = self._mark(pairs, again=len(answers) >= count)
                for row, pair, shown in zip(rows, pairs, marked, strict=True):
                    same = _asked(answer, shown)
                    if same is not None:
                        answers[row] = same
                    # Each answer at once: an interruption loses none.
                    if file is not None:
                        append_line(file, line_of(self._asked_pair(pair), same))
        return self._favoured(answers, min_precision)

    def _begin(self, count: int, file: Path | None) -> _Progress:
        """Return the answers of a file, and the pairs of the pool that are not in it."""
        check_limit(count, "count", option="--ask")
        if file is not None:
            check_output(file, (".jsonl",), overwrite=True)
        known = {} if file is None or not file.exists() else read_answers(file)
        rows = {self._asked_pair(pair): row for row, pair in enumerate(self.pool)}
        has_ngram = any(asked.ngram == self.loosest.ngram for asked in known)
        if has_ngram and rows.keys().isdisjoint(known):
            # Answers of the same length of shingles, but none about a pair of this pool: of another
            # collection.
            raise InputError(
                f"No answer in {file} is about a pair of these documents: they changed, or the "
                "answers are of others. Name another file as answers (--answers)."
            )
        answers = {
            rows[asked]: same for asked, same in known.items() if asked in rows and same is not None
        }
        waiting = [row for asked, row in rows.items() if asked not in known]
        return _Progress(answers=answers, waiting=waiting)

    def _asked_pair(self, pair: Drawn) -> AskedPair:
        return AskedPair(*pair.ids, similarity=pair.similarity, ngram=self.loosest.ngram)

    def _mark(self, pairs: Sequence[Drawn], *, again: bool = False) -> list[SweepPair]:
        """Return pairs with their texts, which are read in one pass."""
        marker = Marker(texts_of(self.tasks, self.corpus, pairs), self.loosest)
        return [
            SweepPair(*pair.ids, pair.similarity, marker.mark(*pair.documents), again)
            for pair in pairs
        ]

    def _next(self, answers: Answers, waiting: list[int], count: int) -> list[int]:
        """Return the pairs to ask about next: the missing ones, then one of each band whose
        answers contradict.
        """
        if len(answers) < count:
            return waiting[: count - len(answers)]
        by_band: dict[int, int] = {}
        bands = asking.band_of(np.array([self.pool[row].similarity for row in waiting]))
        for row, band in zip(waiting, bands.tolist(), strict=True):
            # The first of each band, in the order of the pool.
            by_band.setdefault(band, row)
        similarity = np.array([self.pool[row].similarity for row in answers])
        again = asking.bands_to_ask_again(similarity, _verdicts(answers), count)
        return [by_band[band] for band in again if band in by_band]

    def _favoured(self, answers: Answers, min_precision: float) -> Suggestion:
        """Return the precise settings with the largest F1, if they exceed the given ones."""
        rows = np.array(list(answers), np.int64)
        estimates = asking.estimate(self.sample, rows, _verdicts(answers))
        if not estimates:
            return self._unchanged(f"None of {len(answers)} answers is yes.")
        decision = asking.decide(estimates, min_precision, self.given.ngram, self.given.threshold)
        found = decision.found
        reason = f"By {plural(len(answers), 'answer')}, {_reason(decision, min_precision)}"
        if decision.changes:
            chosen = replace(self.given, ngram=found.ngram, threshold=found.threshold)
            return Suggestion(chosen, changes=True, reason=reason, estimate=found)
        return self._unchanged(reason, estimate=found)


def similarities_of(pairs: Pairs) -> Floats:
    """Return the similarity of each pair."""
    return pairs.measured[SIMILARITY.name].astype(np.float64)


def texts_of(tasks: list[Task], corpus: Corpus, pairs: Sequence[Drawn]) -> dict[int, str]:
    """Return the texts of pairs by their documents."""
    documents = np.unique(np.array([pair.documents for pair in pairs], np.uint32))
    return dict(read_texts(tasks, corpus.part_ends, documents))


def _verdicts(answers: Answers) -> Mask:
    return np.array(list(answers.values()), np.bool_)


def _asked(answer: Ask, pair: SweepPair) -> bool | None:
    """Return the answer about a pair."""
    same = answer(pair)
    if same not in (None, False, True):
        raise InputError(
            f"An answer is True, False or None: got {same!r:.80}. Change the function."
        )
    return None if same is None else bool(same)


def _reason(decision: asking.Decision, min_precision: float) -> str:
    """Return the reason of a decision, a clause that ends the sentence."""
    found = decision.found
    precision = _with_interval(found.precision)
    recall = _with_interval(found.recall)
    setting = f"{plural(found.ngram, 'word')} @ {found.threshold:g}"
    if not decision.is_precise:
        return (
            f"no setting is precise enough: at {setting}, which has the largest F1, "
            f"the precision is {precision}, where {min_precision:g} is the least, from an interval "
            f"above {min_precision / 2:g}. Check each yes to a pair of low similarity, answer more "
            "pairs (--ask), or accept a lower precision (--min-precision)."
        )
    if not decision.changes:
        return (
            f"no precise setting has a larger F1 than the given one: {found.f1:.2f} at {setting}, "
            f"and {decision.given.f1:.2f}."
        )
    return (
        f"{setting} has the largest F1, {found.f1:.2f}: precision "
        f"{precision}, recall {recall} of the duplicates from a similarity of {choosing.LOWEST:g} "
        "on."
    )


def _with_interval(share: asking.Share) -> str:
    return f"{share.estimated:.2f} ({share.low:.2f} to {share.high:.2f})"
