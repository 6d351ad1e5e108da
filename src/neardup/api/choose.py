"""Suggest a shingle length and a threshold for a collection, and ask about pairs to estimate
them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neardup.api.grades import ComparedPool, Counted, Drawn, compare_pool, describe_grades
from neardup.arrays import Floats, Ints, Mask, arrow_of_strings
from neardup.decide.outcome import Outcome, Pairs
from neardup.decide.rules import Every, rule_of
from neardup.documents.batch import Corpus
from neardup.engines.base import Search
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
from neardup.runs.locations import DocumentLocations
from neardup.runs.scratch import workspace
from neardup.schemas import SIMILARITY
from neardup.settings.constraints import check_kind, check_limit
from neardup.settings.methods import MinHash
from neardup.settings.run import MIN_PRECISION, SelectionSettings
from neardup.suggestion import Grades, Suggestion, SweepPair
from neardup.verify import asking, choosing

Answer = Callable[[SweepPair], bool | None]

_RECALL = 0.9
_FEW_WORDS = 20
_SAMPLE = 1_000  # texts for the median number of words
_MAX_DOCUMENTS = 300_000
_MAX_PAIRS = 30_000_000
_MIN_BUCKET = 64
_MAX_BUCKET = 100_000
_WIDER = 10  # times, the next bound of buckets


_OTHERS = ("nfkc", "case_fold", "fold", "html", "seed", "recall", "threshold", "ngram")
NO_RULE = "Only the Jaccard similarity of words has a rule that was measured."


def has_rule(given: object) -> bool:
    """Return whether settings can be chosen for a method."""
    others = {name: value for name, value in vars(given).items() if name in _OTHERS}
    # Only these settings may differ from the default method: the rule was measured for the others.
    return len(others) == len(_OTHERS) and given == replace(MinHash(), **others)


class Choice(NamedTuple):
    """The settings to suggest, the grades, and the object that asks, each None if it is missing."""

    suggestion: Suggestion | None = None
    grades: Grades | None = None
    chooser: _Chooser | None = None


def choose(job: Job, tasks: list[Task], given: MinHash, corpus: Corpus, *, removed: int) -> Choice:
    """Return the settings to suggest and both grades. removed : the documents that the given
    settings remove.

    Notes
    -----
    One search from similarity 0.1 on. The shingles are of 2 words, of 1 word if half of the texts
    have fewer than 20 different words, or of as many as the settings give, if not the default. The
    bound of the buckets limits the pairs to about 30 million. If the bound hides pairs, it is
    raised tenfold while there are fewer than 3 million; if pairs are still hidden, nothing is
    suggested. A second search, at the settings of versions, counts the documents that they remove.
    """
    if not has_rule(given):
        return Choice(Suggestion(given, False, NO_RULE), None, None)
    copies = Counted(given, removed)
    loosest = replace(
        given, ngram=_ngram(tasks, given, corpus), threshold=choosing.LOWEST, recall=_RECALL
    )
    general = replace(given, ngram=loosest.ngram, threshold=choosing.GENERAL)
    if corpus.num_documents > _MAX_DOCUMENTS:
        reason = (
            f"{corpus.num_documents:,} documents are more than {_MAX_DOCUMENTS:,}. Choose on a "
            "part of the collection."
        )
        versions = Counted(general, _count_removed(job, tasks, general))
        grades = describe_grades(copies, versions, None, loosest)
        return Choice(Suggestion(given, False, reason), grades, None)
    found = _search(job, tasks, given, loosest, corpus)
    clearest = found.suggestion.clearest
    method = general if clearest is None else clearest
    versions = Counted(method, _count_removed(job, tasks, method))
    grades = describe_grades(copies, versions, found.pool, loosest)
    return Choice(found.suggestion, grades, found.chooser)


class _Found(NamedTuple):
    """The results of the search from the lowest similarity on."""

    suggestion: Suggestion
    chooser: _Chooser
    pool: ComparedPool


def _search(
    job: Job, tasks: list[Task], given: MinHash, loosest: MinHash, corpus: Corpus
) -> _Found:
    """Search from the lowest similarity on; return the settings to suggest and the pairs to ask
    about.
    """
    found = _find_pairs(job, tasks, loosest, corpus)
    lengths = asking.LENGTHS if given.ngram == MinHash().ngram else (given.ngram,)
    methods = {ngram: replace(given, ngram=ngram) for ngram in lengths}
    corpus = found.outcome.corpus
    texts = _texts(tasks, corpus, found.drawn)
    pool = compare_pool(found.drawn, found.weight, texts, loosest, methods)
    chooser = _Chooser(tasks, corpus, given, loosest, sample=pool.sample, pool=found.drawn)
    hidden = found.outcome.num_bucket_overflows
    return _Found(chooser.suggest(found.outcome.pairs, hidden=hidden), chooser, pool)


class _FoundPairs(NamedTuple):
    """The pairs of a search. drawn, weight : the pairs that may be asked about; see `Pool`."""

    outcome: Outcome
    drawn: list[Drawn]
    weight: Floats


def _find_pairs(job: Job, tasks: list[Task], loosest: MinHash, corpus: Corpus) -> _FoundPairs:
    method = method_of(loosest).resolve()
    searches = [
        Search(method, selection, Every())
        for selection in _widening(job.run.selection.within, corpus.num_documents)
    ]
    with (
        workspace() as scratch,
        closing(
            pipeline.run_searches(tasks, searches, job.run.settings, scratch, job.stages)
        ) as found,
    ):
        for searched in found:
            outcome = searched.outcome
            # Enough if no bucket hides a document. The next search would find up to _WIDER times as
            # many pairs.
            has_many_pairs = len(outcome.pairs.left) * _WIDER > _MAX_PAIRS
            if not outcome.num_bucket_overflows or has_many_pairs:
                break
        pool = asking.draw_pool(_similarities(outcome.pairs))
        drawn = _name(outcome.pairs, pool.rows, searched.locations)
    return _FoundPairs(outcome, drawn, pool.weight)


def _count_removed(job: Job, tasks: list[Task], settings: MinHash) -> int:
    """Return the number of documents that settings remove."""
    selection = job.run.selection
    search = Search(method_of(settings).resolve(), selection, rule_of(selection))
    with (
        workspace() as scratch,
        closing(
            pipeline.run_searches(tasks, [search], job.run.settings, scratch, job.stages)
        ) as found,
    ):
        return len(next(found).outcome.removals.documents)


def _widening(within: str | None, num_documents: int) -> list[SelectionSettings]:
    """Return the settings of the searches, each with larger buckets than the one before."""
    # About _MAX_PAIRS pairs if each document has a full bucket.
    bound = max(_MIN_BUCKET, _MAX_PAIRS // max(1, num_documents))
    bounds = (bound, _WIDER * bound, _WIDER**2 * bound)
    return [
        SelectionSettings(within=within, max_bucket_size=min(bound, _MAX_BUCKET))
        for bound in bounds
    ]


def _ngram(tasks: list[Task], given: MinHash, corpus: Corpus) -> int:
    """Return the given length of shingles; in place of the default, 1 if half of the texts have few
    different words, and 2 if not.
    """
    if given.ngram != MinHash().ngram:
        return given.ngram
    if not corpus.num_documents:
        return 1
    # Fewer than _SAMPLE documents give some numbers twice.
    sample = np.unique(np.linspace(0, corpus.num_documents - 1, _SAMPLE).astype(np.uint32))
    texts = [text for _, text in read_texts(tasks, corpus.part_ends, sample)]
    num_words = [len(words) for words in _sets(texts, replace(given, ngram=1))]
    return 1 if np.median(num_words) < _FEW_WORDS else 2


def _sets(texts: Sequence[str], settings: MinHash) -> list[Any]:
    """Return the set of shingles of each text."""
    shingles = shingle_documents(extract_text(arrow_of_strings(list(texts)), settings), settings)
    ends = shingles.offsets.tolist()
    return [np.unique(shingles.hashes[start:end]) for start, end in pairwise(ends)]


def _similarities(pairs: Pairs) -> Floats:
    return pairs.measured[SIMILARITY.name].astype(np.float64)


def _name(pairs: Pairs, rows: Ints, locations: DocumentLocations) -> list[Drawn]:
    """Return pairs with the ids of their documents, the earlier document first."""
    left = np.minimum(pairs.left, pairs.right)[rows]
    right = np.maximum(pairs.left, pairs.right)[rows]
    documents = zip(left.tolist(), right.tolist(), strict=True)
    left_ids = locations.ids(left).to_pylist()
    ids = zip(left_ids, locations.ids(right).to_pylist(), strict=True)
    return list(map(Drawn, documents, ids, pairs.measured[SIMILARITY.name][rows].tolist()))


def _texts(tasks: list[Task], corpus: Corpus, pairs: Sequence[Drawn]) -> dict[int, str]:
    """Return the texts of pairs by their documents."""
    documents = np.unique(np.array([pair.documents for pair in pairs], np.uint32))
    return dict(read_texts(tasks, corpus.part_ends, documents))


class _Answer(NamedTuple):
    """An answer about a pair of the pool. row : its place there."""

    row: int
    similarity: float
    same: bool


@dataclass(frozen=True)
class _Chooser:
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

    def _unchanged(self, reason: str) -> Suggestion:
        return Suggestion(self.given, False, reason)

    def suggest(self, pairs: Pairs, *, hidden: int) -> Suggestion:
        """Return the settings that the graph of the pairs suggests.

        hidden : the number of documents that were not compared with all others.
        """
        if hidden:
            reason = f"Too many documents are similar: {hidden:,} were not all compared."
            return self._unchanged(reason)
        similarity = _similarities(pairs)
        levels = choosing.levels_of(pairs.left, pairs.right, similarity, self.corpus.num_documents)
        if not levels:
            reason = "Each threshold finds no pair, or more than a tenth of all pairs."
            return self._unchanged(reason)
        level = max(reversed(levels), key=attrgetter("score"))  # of equal ones, the strictest
        chosen = replace(self.given, ngram=self.loosest.ngram, threshold=level.threshold)
        shingles = plural(self.loosest.ngram, "word")
        clearest = f"Shingles of {shingles} separate groups best at {level.threshold:g}"
        doubts = level.doubts(levels)
        if doubts is not None:
            reason = f"The texts do not decide. {clearest}, but {doubts}."
            return Suggestion(self.given, False, reason, chosen, levels=levels)
        reason = (
            f"{clearest}: {level.documents:,} documents have a neighbour, two neighbours have "
            f"{level.agreement * 100:.1f} % of their neighbours in common, and "
            f"{level.stability * 100:.1f} % of the pairs remain at {level.threshold + 0.05:.2f}."
        )
        return Suggestion(chosen, True, reason, chosen, levels=levels)

    def _mark(self, pairs: Sequence[Drawn], *, again: bool = False) -> list[SweepPair]:
        """Return pairs with their texts, which are read in one pass."""
        marker = Marker(_texts(self.tasks, self.corpus, pairs), self.loosest)
        return [
            SweepPair(*pair.ids, pair.similarity, marker.mark(*pair.documents), again)
            for pair in pairs
        ]

    def _begin(self, count: int, file: Path | None) -> tuple[list[_Answer], list[int]]:
        """Return the answers of a file, and the places in the pool of pairs that are not in it."""
        check_limit(count, "count", option="--ask")
        if file is not None:
            check_output(file, (".jsonl",), overwrite=True)
        known = {} if file is None or not file.exists() else _read_answers(file)
        ngram = self.loosest.ngram
        pool = {
            _Question(*pair.ids, pair.similarity, ngram): row for row, pair in enumerate(self.pool)
        }
        has_ngram = any(question.ngram == ngram for question in known)
        if has_ngram and pool.keys().isdisjoint(known):
            # Answers of the same length of shingles, but none about a pair of this pool: of another
            # collection.
            raise InputError(
                f"No answer in {file} is about a pair of these documents: they changed, or the "
                "answers are of others. Name another file as answers (--answers)."
            )
        answers = [
            _Answer(pool[question], row["similarity"], row["duplicate"])
            for question, row in known.items()
            if question in pool and row["duplicate"] is not None
        ]
        return answers, [row for question, row in pool.items() if question not in known]

    def _line(self, pair: Drawn, same: bool | None = None) -> JsonObject:
        """Return a line of a file of answers."""
        ids = dict(zip(("left_id", "right_id"), pair.ids, strict=True))
        return ids | {"duplicate": same, "similarity": pair.similarity, "ngram": self.loosest.ngram}

    def questions(self, count: int, file: Path | None) -> tuple[list[Question], int]:
        """Return the lines and the texts of pairs to ask about, and the number of answers in the
        file.
        """
        answers, waiting = self._begin(count, file)
        pairs = [self.pool[row] for row in waiting[: max(0, count - len(answers))]]
        marked = [shown.pair for shown in self._mark(pairs)]
        return list(zip(map(self._line, pairs), marked, strict=True)), len(answers)

    def ask(
        self, answer: Answer, count: int, file: Path | None, min_precision: float
    ) -> Suggestion:
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
                        answers.append(_Answer(row, pair.similarity, same))
                    # Each answer at once: an interruption loses none.
                    if file is not None:
                        _append_line(file, self._line(pair, same))
        return self._favoured(answers, min_precision)

    def _next(self, answers: Sequence[_Answer], waiting: list[int], count: int) -> list[int]:
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
        similarity = np.array([answer.similarity for answer in answers])
        again = asking.bands_to_ask_again(similarity, _verdicts(answers), count)
        return [by_band[band] for band in again if band in by_band]

    def _favoured(self, answers: list[_Answer], min_precision: float) -> Suggestion:
        """Return the precise settings with the largest F1, if they exceed the given ones."""
        rows = np.array([answer.row for answer in answers], np.int64)
        estimates = asking.estimate(self.sample, rows, _verdicts(answers))
        if not estimates:
            return self._unchanged(f"None of {len(answers)} answers is yes.")
        decision = asking.decide(estimates, min_precision, self.given.ngram, self.given.threshold)
        found = decision.found
        reason = f"By {plural(len(answers), 'answer')}, {_reason(decision, min_precision)}"
        if decision.changes:
            chosen = replace(self.given, ngram=found.ngram, threshold=found.threshold)
            return Suggestion(chosen, True, reason, estimate=found)
        return Suggestion(self.given, False, reason, estimate=found)


def _verdicts(answers: Sequence[_Answer]) -> Mask:
    return np.array([answer.same for answer in answers], np.bool_)


def _asked(answer: Answer, pair: SweepPair) -> bool | None:
    """Return the answer about a pair."""
    same = answer(pair)
    if same not in (None, False, True):
        raise InputError(
            f"An answer is True, False or None: got {same!r:.80}. Change the function."
        )
    return None if same is None else bool(same)


def _append_line(file: Path, row: JsonObject) -> None:
    """Append a line to a file of answers."""
    line = json.dumps(row, ensure_ascii=False) + "\n"
    # An editor may have left the last line without its end.
    last_is_open = file.exists() and file.read_bytes()[-1:] not in (b"", b"\n")
    with file.open("a", encoding="utf-8") as lines:
        lines.write("\n" + line if last_is_open else line)


def _reason(decision: asking.Decision, min_precision: float) -> str:
    """Return the reason of a decision, a clause that ends the sentence."""
    found = decision.found
    precision, recall = (
        f"{share.estimated:.2f} ({share.low:.2f} to {share.high:.2f})"
        for share in (found.precision, found.recall)
    )
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


class _Question(NamedTuple):
    """A pair that was asked about; the texts differ with the length of the shingles."""

    left_id: str
    right_id: str
    similarity: float
    ngram: int


_ANSWER_TYPES: dict[str, Any] = {
    "left_id": str,
    "right_id": str,
    "duplicate": bool | None,
    "similarity": float | int,
    "ngram": int,
}


def _read_answers(file: Path) -> dict[_Question, JsonObject]:
    """Return the rows of a file of answers by their questions."""
    rows: dict[_Question, JsonObject] = {}
    for number, line in enumerate(file.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        row = _answer_of(line)
        if row is None:
            raise InputError(
                f"Line {number} of {file} is no answer of a sweep: got "
                f"{line.decode(errors='replace')[:80]!r}. An answer is a JSON object with left_id, "
                "right_id, duplicate (true, false or null), similarity, ngram. Fix the line, or "
                "name another file."
            )
        question = _Question(*(row[name] for name in _Question._fields))
        # The same line twice is fine, two different answers are not.
        if rows.setdefault(question, row)["duplicate"] != row["duplicate"]:
            raise InputError(
                f"Line {number} of {file} contradicts an earlier answer: got {row}. Remove one of "
                "the two."
            )
    return rows


def _answer_of(line: bytes) -> JsonObject | None:
    """Return a line of a file of answers; None if it is no answer."""
    try:
        row: JsonObject = json.loads(line)
        has_types = all(isinstance(row[name], kind) for name, kind in _ANSWER_TYPES.items())
        is_answer = has_types and choosing.LOWEST <= row["similarity"] <= 1
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return row if is_answer else None
