"""The rules of others that find test items in documents, in plain Python: n-grams of GPT-3,
weighted 5-grams of decon.

Both are rewritten from their publications, to compare answers; their speed here says nothing about
the originals.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_WORD = re.compile(r"\w+")
_CHARACTER = re.compile(r"[㐀-鿿]|[^\W_㐀-鿿]+")


class Hit(NamedTuple):
    """An item in a document: characters of the document."""

    item_id: str
    document_id: str
    start: int
    end: int
    score: float


class Question(NamedTuple):
    """The parts of an item that the rules look for."""

    id: str
    group: str
    question: str
    answer: str


def ngrams(words: list[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + size]) for i in range(len(words) - size + 1)]


def gpt3(items: Iterable[Question], documents: Iterable[tuple[str, str]]) -> Iterator[Hit]:
    """Yield the items of which a sequence of N words is in a document.

    Notes
    -----
    Brown et al., *Language Models are Few-Shot Learners*, 2020, appendix C: N is the 5th percentile
    of the lengths of a benchmark's items in words, at least 8 and at most 13; case, punctuation and
    blanks are ignored. Blanks separate words. A shorter item is never found. Here a hit spans the
    matched sequences.
    """
    by_group: dict[str, list[tuple[str, list[str]]]] = defaultdict(list)
    for item in items:
        by_group[item.group].append((item.id, [word for word, _, _ in _blank_words(item.question)]))
    holders: dict[tuple[str, ...], set[str]] = defaultdict(set)
    sizes = set()
    for members in by_group.values():
        lengths = sorted(len(words) for _, words in members)
        size = min(13, max(8, lengths[len(lengths) // 20]))
        sizes.add(size)
        for item_id, item_words in members:
            for gram in ngrams(item_words, size):
                holders[gram].add(item_id)
    for name, text in documents:
        words = list(_blank_words(text))
        plain = [word for word, _, _ in words]
        found: dict[str, list[int]] = {}
        for size in sizes:
            for place, gram in enumerate(ngrams(plain, size)):
                for item in holders.get(gram, ()):
                    first = words[place][1]
                    last = words[place + size - 1][2]
                    span = found.setdefault(item, [first, last])
                    span[0], span[1] = min(span[0], first), max(span[1], last)
        yield from (Hit(item, name, span[0], span[1], 1.0) for item, span in found.items())


def _blank_words(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield what blanks separate, in lower case without punctuation, with its characters."""
    for match in re.finditer(r"\S+", text):
        word = "".join(_WORD.findall(match.group().lower()))
        if word:
            yield word, match.start(), match.end()


_NGRAM = 5
_SAMPLE_EVERY = 10
_MISSES = 11
_THRESHOLD = 0.8
_PERFECT_BELOW = 20
_USUAL_FROM = 50
_SHORTEST = 20
_LEAST_UNIQUE = 4
_SHORT_ANSWER = 3
_SHORT_WINDOW = 50
_LONG_WINDOW = 100
_ANSWER_NGRAM = 3
_QUESTION_WEIGHT = 0.75
_SURE_NGRAMS = 20
_TOKENS_PER_WORD = 1.3  # of cl100k, which its limits count


class _Reference(NamedTuple):
    grams: frozenset[tuple[str, ...]]
    total: float
    answer: list[str]
    tokens: float


class Decon:
    """The rule of AI2's decon 0.x with its default settings, used for OLMo.

    Notes
    -----
    github.com/allenai/decon: doc/simple-details.md, config/default.yaml, src/detect/scoring.rs.
    Every tenth 5-gram of a document is looked up among those of the questions; from a hit, the
    stretch grows both ways until 11 misses follow each other. The score is the share of the
    question's 5-grams, weighted by ln(N / frequency among the items), and of its answer nearby;
    short items need a perfect score. Tokens are words here (of Chinese, characters) instead of
    those of cl100k, so that its limits of tokens are divided by 1.3. Questions of fewer than 20
    tokens, answer included, are left out, as by default.
    """

    def __init__(self, items: Iterable[Question]) -> None:
        kept = []
        for item in items:
            question = tokens_of(item.question)
            answer = tokens_of(item.answer)
            length = (len(question) + len(answer)) * _TOKENS_PER_WORD
            if length >= _SHORTEST and len(set(question)) >= _LEAST_UNIQUE:
                kept.append((item.id, ngrams(question, _NGRAM), answer, length))
        self.holders: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for name, grams, _, _ in kept:
            for gram in grams:
                self.holders[gram].add(name)
        self.weight = {
            gram: math.log(len(kept) / len(names)) for gram, names in self.holders.items()
        }
        self.references = {}
        for name, grams, answer, length in kept:
            if total := sum(self.weight[gram] for gram in set(grams)):
                self.references[name] = _Reference(frozenset(grams), total, answer, length)
        counts = Counter(word for one in self.references.values() for word in set(one.answer))
        self.answer_weight = {word: math.log(len(kept) / count) for word, count in counts.items()}

    def find(self, documents: Iterable[tuple[str, str]]) -> Iterator[Hit]:
        """Yield the items in documents."""
        for name, text in documents:
            words = [
                (match.group(), match.start(), match.end())
                for match in _CHARACTER.finditer(text.lower())
            ]
            if len(text.lower()) != len(text):  # characters of another length in lower case
                words = [
                    (match.group().lower(), match.start(), match.end())
                    for match in _CHARACTER.finditer(text)
                ]
            plain = [word for word, _, _ in words]
            best: dict[str, Hit] = {}
            for item, first, last, matched in self._clusters(plain):
                score = self._score(self.references[item], plain, last, matched)
                if score >= _THRESHOLD and (item not in best or score > best[item].score):
                    best[item] = Hit(item, name, words[first][1], words[last][2], score)
            yield from best.values()

    def _clusters(self, words: list[str]) -> Iterator[tuple[str, int, int, set[tuple[str, ...]]]]:
        grams = ngrams(words, _NGRAM)
        place = 0
        places: dict[str, list[int]] = {}
        while place < len(grams):
            names = self.holders.get(grams[place], ())
            for name in names:
                if name in self.references and not (name in places and places[name][-1] >= place):
                    first = self._grow(name, grams, place, -1)
                    last = self._grow(name, grams, place, 1)
                    places.setdefault(name, []).append(last)
                    matched = {
                        gram
                        for gram in grams[first : last + 1]
                        if gram in self.references[name].grams
                    }
                    yield name, first, last + _NGRAM - 1, matched
            place += 1 if names else _SAMPLE_EVERY

    def _grow(self, name: str, grams: list[tuple[str, ...]], place: int, step: int) -> int:
        misses = 0
        end = place
        own = self.references[name].grams
        while misses < _MISSES and 0 <= place + step < len(grams):
            place += step
            misses = 0 if grams[place] in own else misses + 1
            end = end if misses else place
        return end

    def _score(
        self, one: _Reference, words: list[str], last: int, matched: set[tuple[str, ...]]
    ) -> float:
        score = sum(self.weight[gram] for gram in matched) / one.total
        if one.answer:
            sure = min(1.0, 0.5 + 0.5 * len(one.grams) / _SURE_NGRAMS)
            share = self._answer_share(one.answer, words, last)
            score = score * _QUESTION_WEIGHT * sure + share * (1 - _QUESTION_WEIGHT * sure)
        score = min(score, 1.0)
        span = (one.tokens - _PERFECT_BELOW) / (_USUAL_FROM - _PERFECT_BELOW)
        needed = 1.0 - (1.0 - _THRESHOLD) * min(1.0, max(0.0, span))
        return score if score > 1 - 1e-9 else score * _THRESHOLD / needed

    def _answer_share(self, answer: list[str], words: list[str], last: int) -> float:
        if len(answer) <= _SHORT_ANSWER:
            near = words[last + 1 : last + 1 + _SHORT_WINDOW]
            return float(any(near[i : i + len(answer)] == answer for i in range(len(near))))
        window = max(_LONG_WINDOW, 2 * len(answer))
        own = set(ngrams(answer, _ANSWER_NGRAM))
        near = set(ngrams(words[last + 1 : last + 1 + window], _ANSWER_NGRAM))
        return len(own & near) / len(own)


def tokens_of(text: str) -> list[str]:
    """Return words in lower case; of Chinese, the characters."""
    return _CHARACTER.findall(text.lower())
