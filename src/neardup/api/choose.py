"""Suggest a shingle length and a threshold for a collection, and ask about pairs to estimate
them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neardup.arrays import Floats, Ints, Mask, arrow_of_strings
from neardup.decide.outcome import Pairs
from neardup.decide.rules import Every
from neardup.documents.batch import Corpus
from neardup.engines.local import pipeline
from neardup.errors import InputError
from neardup.features.shingles import extract_text, shingle_documents
from neardup.files import JsonObject
from neardup.formats.reading import Task
from neardup.methods.registry import method_of
from neardup.output.job import Job
from neardup.output.tables import check_output
from neardup.output.write import read_texts
from neardup.report.items import Marker
from neardup.report.questions_html import Question
from neardup.report.wording import plural
from neardup.runs import reading
from neardup.runs.locations import DocumentLocations
from neardup.runs.scratch import workspace
from neardup.schemas import SIMILARITY
from neardup.settings.constraints import check_kind, check_limit
from neardup.settings.methods import MinHash
from neardup.settings.run import MIN_PRECISION, SelectionSettings
from neardup.suggestion import Suggestion, SweepPair
from neardup.verify import asking, choosing

Answer = Callable[[SweepPair], bool | None]

_RECALL, _WIDER = 0.9, 10
_FEW_WORDS = 20
_SAMPLE = 1_000  # texts of which the median number of words is taken
_MAX_DOCUMENTS, _MAX_PAIRS, _BUCKETS = 300_000, 30_000_000, (64, 100_000)
_POOL = 100  # pairs of each band that may be asked about
_ADDED, _CLOSE, _MEASURED = 10, 3, 200
_SEED = 20261125  # fixed: the same collection gives the same questions


_OTHERS = ("nfkc", "case_fold", "fold_chinese", "html", "seed", "recall", "threshold", "ngram")
NO_RULE = "Only the Jaccard similarity of words has a rule that was measured."


def has_rule(given: object) -> bool:
    """Return whether settings can be chosen for a method."""
    others = {name: value for name, value in vars(given).items() if name in _OTHERS}
    return len(others) == len(_OTHERS) and given == replace(MinHash(), **others)


class _Drawn(NamedTuple):
    """A pair of documents that may be shown: their numbers, their ids and their similarity."""

    documents: tuple[int, int]
    ids: tuple[str, str]
    similarity: float


def choose(
    job: Job, tasks: list[Task], given: MinHash, corpus: Corpus
) -> tuple[Suggestion, _Chooser | None]:
    """Return the settings to suggest, and the object that asks; None if they cannot be chosen.

    Notes
    -----
    One search from similarity 0.1 on. The shingles are of 2 words, of 1 word if half of the texts
    have fewer than 20 different words, or of as many as the settings give, if not the default. The
    bound of the buckets limits the pairs to about 30 million. Where it hides pairs, it is raised
    tenfold while there are fewer than 3 million; where it hides pairs even so, nothing is
    suggested.
    """
    if not has_rule(given):
        return Suggestion(given, False, NO_RULE), None
    total = corpus.num_documents
    if total > _MAX_DOCUMENTS:
        reason = (
            f"{total:,} documents are more than {_MAX_DOCUMENTS:,}. Choose on a part of the "
            "collection."
        )
        return Suggestion(given, False, reason), None
    ngram = given.ngram if given.ngram != MinHash().ngram else _ngram(tasks, given, corpus)
    loosest = replace(given, ngram=ngram, threshold=choosing.LOWEST, recall=_RECALL)
    least = max(_BUCKETS[0], _MAX_PAIRS // max(1, total))
    method = method_of(loosest).resolve()
    sizes = (min(size, _BUCKETS[1]) for size in (least, _WIDER * least, _WIDER**2 * least))
    selections = [
        SelectionSettings(within=job.run.selection.within, max_bucket_size=size) for size in sizes
    ]
    searches = [pipeline.Search(method, selection, Every()) for selection in selections]
    with (
        workspace() as scratch,
        closing(
            pipeline.run_searches(tasks, searches, job.run.settings, scratch, job.stages)
        ) as found,
    ):
        for outcome in found:
            if not outcome.num_bucket_overflows or len(outcome.pairs.left) * _WIDER > _MAX_PAIRS:
                break
        locations = reading.locations(tasks, outcome.corpus, scratch)
        pool = _name(outcome.pairs, _pool(outcome.pairs), locations)
        chooser = _Chooser(tasks, outcome.corpus, given, loosest, _counted(outcome.pairs), pool)
        suggestion = chooser.suggest(outcome.pairs, locations, hidden=outcome.num_bucket_overflows)
    return suggestion, chooser


def _ngram(tasks: list[Task], given: MinHash, corpus: Corpus) -> int:
    """Return 1 if half of the texts have few different words, else 2."""
    sample = np.unique(np.linspace(0, corpus.num_documents - 1, _SAMPLE).astype(np.uint32))
    texts = (
        [text for _, text in read_texts(tasks, corpus.part_ends, sample)]
        if corpus.num_documents
        else []
    )
    return (
        1
        if np.median([len(one) for one in _sets(texts, replace(given, ngram=1))] or [0])
        < _FEW_WORDS
        else 2
    )


def _sets(texts: Sequence[str], settings: MinHash) -> list[Any]:
    """Return the set of shingles of each text."""
    shingles = shingle_documents(extract_text(arrow_of_strings(list(texts)), settings), settings)
    ends = shingles.offsets.tolist()
    return [np.unique(shingles.hashes[start:end]) for start, end in pairwise(ends)]


def _counted(pairs: Pairs) -> Ints:
    return asking.count_steps(pairs.measured[SIMILARITY.name].astype(np.float64))


def _pool(pairs: Pairs) -> Ints:
    """Return the pairs that may be asked about, at random within their bands, the bands by turns,
    the highest first.
    """
    order = np.random.default_rng(_SEED).permutation(len(pairs.left))
    band = asking.band_of(pairs.measured[SIMILARITY.name])[order]
    members = [order[band == each][:_POOL] for each in range(len(asking.BANDS) - 1, -1, -1)]
    turns = np.concatenate([np.arange(len(each)) for each in members])
    return np.concatenate(members)[np.argsort(turns, kind="stable")].astype(np.int64)


def _name(pairs: Pairs, rows: Ints, locations: DocumentLocations) -> list[_Drawn]:
    """Return pairs with the ids of their documents."""
    sides = [np.minimum(pairs.left, pairs.right)[rows], np.maximum(pairs.left, pairs.right)[rows]]
    documents = zip(*(side.tolist() for side in sides), strict=True)
    ids = zip(*(locations.ids(side).to_pylist() for side in sides), strict=True)
    return list(map(_Drawn, documents, ids, pairs.measured[SIMILARITY.name][rows].tolist()))


@dataclass(frozen=True)
class _Chooser:
    """The pairs of a collection, from which settings are chosen.

    given : the settings of the sweep. loosest : those of the search. pairs : the number of its
    pairs by step. pool : the pairs that may be asked about, in this order.
    """

    tasks: list[Task]
    corpus: Corpus
    given: MinHash
    loosest: MinHash
    pairs: Ints
    pool: list[_Drawn]

    def at(self, threshold: float) -> MinHash:
        """Return the settings of a threshold."""
        return replace(self.given, ngram=self.loosest.ngram, threshold=threshold)

    def suggest(self, pairs: Pairs, locations: DocumentLocations, *, hidden: int) -> Suggestion:
        """Return the settings that the graph of the pairs suggests, with examples."""
        if hidden:
            return Suggestion(
                self.given,
                False,
                f"Too many documents are similar: {hidden:,} were not all compared.",
            )
        similarity = pairs.measured[SIMILARITY.name].astype(np.float64)
        levels = choosing.levels_of(pairs.left, pairs.right, similarity, self.corpus.num_documents)
        if not levels:
            return Suggestion(
                self.given,
                False,
                "Each threshold finds no pair, or more than a tenth of all pairs.",
            )
        level = max(
            reversed(levels), key=lambda each: each.score
        )  # of equal graphs, the highest threshold
        doubts = level.doubts(levels)
        shingles = "1 word" if self.loosest.ngram == 1 else f"{self.loosest.ngram} words"
        clearest = f"Shingles of {shingles} separate groups best at {level.threshold:g}"
        if doubts is not None:
            reason = f"The texts do not decide. {clearest}, but {doubts}."
            return Suggestion(self.given, False, reason, self.at(level.threshold), levels=levels)
        reason = (
            f"{clearest}: {level.documents:,} documents have a neighbour, two neighbours have "
            f"{level.agreement * 100:.1f} % of their neighbours in common, and "
            f"{level.stability * 100:.1f} % of the "
            f"pairs remain at {level.threshold + 0.05:.2f}."
        )
        order = np.argsort(similarity, kind="stable")
        first = int(np.searchsorted(similarity[order], level.threshold))
        close = np.concatenate(
            [order[first : first + _CLOSE], order[max(0, first - _CLOSE) : first][::-1]]
        )
        num_above = min(_CLOSE, len(order) - first)
        # Of pairs at random, those that the given settings do not find.
        drawn = np.random.default_rng(_SEED).permutation(order[first:])[:_MEASURED]
        named = _name(pairs, np.concatenate([close, drawn]), locations)
        shown, drawn_pairs = named[: len(close)], named[len(close) :]
        shown += self._added(drawn_pairs)
        marked = self._mark(shown)
        chosen = self.at(level.threshold)
        parts = marked[len(close) :], marked[:num_above], marked[num_above : len(close)]
        return Suggestion(chosen, True, reason, chosen, *parts, levels)

    def _added(self, drawn: Sequence[_Drawn]) -> list[_Drawn]:
        """Return pairs that the given settings do not find, by rising similarity."""
        texts = self._texts(drawn)
        sets = dict(zip(texts, _sets(list(texts.values()), self.given), strict=True))

        def similarity(left: int, right: int) -> float:
            shared = len(np.intersect1d(sets[left], sets[right], assume_unique=True))
            return shared / max(1, len(sets[left]) + len(sets[right]) - shared)

        added = [pair for pair in drawn if similarity(*pair.documents) < self.given.threshold]
        return sorted(added[:_ADDED], key=lambda pair: pair.similarity)

    def _texts(self, pairs: Sequence[_Drawn]) -> dict[int, str]:
        documents = np.unique(np.array([pair.documents for pair in pairs], np.uint32))
        return dict(read_texts(self.tasks, self.corpus.part_ends, documents))

    def _mark(self, pairs: Sequence[_Drawn], *, again: bool = False) -> list[SweepPair]:
        """Return pairs with their texts, which are read in one pass."""
        marker = Marker(self._texts(pairs), self.loosest)
        return [
            SweepPair(*pair.ids, pair.similarity, marker.mark(*pair.documents), again)
            for pair in pairs
        ]

    def _begin(self, count: int, file: Path | None) -> tuple[list[JsonObject], list[_Drawn]]:
        """Return the answers of a file, and the pairs that it does not have."""
        check_limit(count, "count", option="--ask")
        if file is not None:
            check_output(file, (".jsonl",), overwrite=True)
        known = {} if file is None or not file.exists() else _read_answers(file)
        pool = {(*pair.ids, pair.similarity, self.loosest.ngram): pair for pair in self.pool}
        if pool.keys().isdisjoint(known) and any(key[-1] == self.loosest.ngram for key in known):
            raise InputError(
                f"No answer in {file} is about a pair of these documents: they changed, or "
                "the answers are of others. "
                "Name another file as answers (--answers)."
            )
        answers = [
            row for key, row in known.items() if key in pool and row["duplicate"] is not None
        ]
        return answers, [pair for key, pair in pool.items() if key not in known]

    def _row(self, pair: _Drawn, same: bool | None = None) -> JsonObject:
        """Return a line of a file of answers."""
        ids = dict(zip(("left_id", "right_id"), pair.ids, strict=True))
        return ids | {"duplicate": same, "similarity": pair.similarity, "ngram": self.loosest.ngram}

    def questions(self, count: int, file: Path | None) -> tuple[list[Question], int]:
        """Return the lines and the texts of pairs to ask about, and the number of answers in the
        file.
        """
        answers, waiting = self._begin(count, file)
        pairs = waiting[: max(0, count - len(answers))]
        marked = [shown.pair for shown in self._mark(pairs)]
        return list(zip(map(self._row, pairs), marked, strict=True)), len(answers)

    def ask(
        self, answer: Answer, count: int, file: Path | None, min_precision: float
    ) -> Suggestion:
        """Ask until there are enough answers, and again where they contradict each other; return
        the settings that they favour.
        """
        check_kind("answer", answer, Callable, "a function")
        min_precision = MIN_PRECISION.check("min_precision", min_precision)
        answers, waiting = self._begin(count, file)
        is_open = file is not None and file.exists() and file.read_bytes()[-1:] not in (b"", b"\n")
        end = "\n" if is_open else ""  # of the last line, which has none
        while pairs := _next(answers, waiting, count):
            waiting = [pair for pair in waiting if pair not in pairs]
            for pair, marked in zip(
                pairs, self._mark(pairs, again=len(answers) >= count), strict=True
            ):
                try:
                    same = answer(marked)
                except StopIteration:
                    return self._favoured(answers, min_precision)
                if same not in (None, False, True):
                    raise InputError(
                        f"An answer is True, False or None: got {same!r:.80}. Change the function."
                    )
                row = self._row(pair, None if same is None else bool(same))
                answers += [] if same is None else [row]
                if file is not None:
                    with file.open("a", encoding="utf-8") as lines:
                        lines.write(end + json.dumps(row, ensure_ascii=False) + "\n")
                    end = ""
        return self._favoured(answers, min_precision)

    def _favoured(self, answers: list[JsonObject], min_precision: float) -> Suggestion:
        """Return the settings with the largest F1 of the precise ones, if it is larger than that of
        the given ones.
        """
        estimates = asking.estimate(self.pairs, *_columns(answers))
        if not estimates:
            return Suggestion(self.given, False, f"None of {len(answers)} answers is yes.")
        strictness = asking.as_strict(self.given.threshold, self.given.ngram, self.loosest.ngram)
        decision = asking.decide(estimates, min_precision, strictness)
        found = decision.found
        reason = f"By {plural(len(answers), 'answer')}, {_reason(decision, min_precision)}"
        if decision.changes:
            return Suggestion(self.at(found.threshold), True, reason, estimate=found)
        return Suggestion(self.given, False, reason, estimate=found)


def _reason(decision: asking.Decision, min_precision: float) -> str:
    """Return the reason of a decision, a clause that ends the sentence."""
    found, given, is_precise = decision
    precision, recall = (
        f"{share.estimated:.2f} ({share.low:.2f} to {share.high:.2f})"
        for share in (found.precision, found.recall)
    )
    if not is_precise:
        return (
            f"no threshold is precise enough: at {found.threshold:g}, which has the largest "
            "F1, the precision is "
            f"{precision}, where {min_precision:g} is the least, from an interval above "
            f"{min_precision / 2:g}. Check "
            "each yes to a pair of low similarity, answer more pairs (--ask), or accept a "
            "lower precision "
            "(--min-precision)."
        )
    if not decision.changes:
        return (
            "no precise threshold has a larger F1 than the given settings, which are about as "
            "strict as "
            f"{given.threshold:g} with this length of shingles: {found.f1:.2f} at "
            f"{found.threshold:g}, and "
            f"{given.f1:.2f}."
        )
    return (
        f"the threshold {found.threshold:g} has the largest F1, {found.f1:.2f}: precision "
        f"{precision}, recall "
        f"{recall} of the duplicates from a similarity of {choosing.LOWEST:g} on."
    )


def _columns(answers: Sequence[JsonObject]) -> tuple[Floats, Mask]:
    """Return the similarities and the verdicts of answers."""
    similarity = np.array([row["similarity"] for row in answers], np.float64)
    return similarity, np.array([row["duplicate"] for row in answers], np.bool_)


def _next(answers: Sequence[JsonObject], waiting: Sequence[_Drawn], count: int) -> Sequence[_Drawn]:
    """Return the pairs to ask about next: those that are missing, then one of each band whose
    answers contradict.
    """
    if len(answers) < count:
        return waiting[: count - len(answers)]
    by_band: dict[int, _Drawn] = {}
    for pair, band in zip(
        waiting, asking.band_of(np.array([pair.similarity for pair in waiting])), strict=True
    ):
        by_band.setdefault(int(band), pair)
    again = asking.bands_to_ask_again(*_columns(answers), count)
    return [by_band[band] for band in again if band in by_band]


def _read_answers(file: Path) -> dict[tuple[Any, ...], JsonObject]:
    """Return the rows of a file of answers by what was asked: ids, similarity and length of the
    shingles.
    """
    rows: dict[tuple[Any, ...], JsonObject] = {}
    for number, line in enumerate(file.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            kinds = {
                "left_id": str,
                "right_id": str,
                "duplicate": bool | None,
                "similarity": float | int,
                "ngram": int,
            }
            valid = all(isinstance(row[name], kind) for name, kind in kinds.items())
            valid = valid and choosing.LOWEST <= row["similarity"] <= 1
        except (ValueError, KeyError, TypeError, RecursionError):
            valid = False
        if not valid:
            raise InputError(
                f"Line {number} of {file} is no answer of a sweep: got "
                f"{line.decode(errors='replace')[:80]!r}. An "
                "answer is a JSON object with left_id, right_id, duplicate (true, false or "
                "null), similarity, ngram. "
                "Fix the line, or name another file."
            )
        key = tuple(row[name] for name in kinds if name != "duplicate")
        if rows.setdefault(key, row)["duplicate"] != row["duplicate"]:
            raise InputError(
                f"Line {number} of {file} contradicts an earlier answer: got {row}. Remove "
                "one of the two."
            )
    return rows
