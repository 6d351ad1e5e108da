"""Generate collections in which texts share a frame, or are versions of one work.

`tools/make_kinds.py` writes them from paragraphs of other texts; the rules are the label:

forms : an application with 18 fields and the same two paragraphs of instructions, filled in by 600
    people. A third hand it in again with up to 3 other fields, and half of these a third time.
    cluster: the person.
letters : 25 offices with an opening and three closing paragraphs each. A letter adds 2 to 6
    sentences of its own; a third are sent again with another date and salutation. cluster: the
    letter, by its own sentences.
editions : 350 works of 12 to 30 sentences in 1 to 4 editions. Each edition replaces 8 to 30 % of
    the different words, each by another one throughout. cluster: the work.
reports : 300 reports of an agency of 4 to 9 paragraphs, printed by 1 to 4 papers. A paper cuts
    the end, writes a headline and a first paragraph, and adds its own closing line. cluster: the
    report.
adverts : vacancies of 50 firms. Those of a firm share a paragraph about it and the benefits, and
    differ in title and duties. Half are posted again with another date, place and number.
    cluster: the vacancy.
revisions : 300 pages of 8 to 20 sentences in 1 to 6 revisions. Each revision deletes, replaces or
    adds up to a sixth of the sentences of the one before. All pages share a notice. cluster: the
    page.
verses : 400 texts of 10 to 25 words in 1 to 4 translations, which replace a third to half of the
    words. cluster: the text.
minutes : 30 committees with four standing items. The minutes of a meeting have 3 to 8 sentences of
    their own; a draft lacks one and has other words in 2 %. cluster: the meeting.
notices : 60 notices of 20 to 40 words, each issued by 1 to 12 offices, with 2 to 4 names, dates and
    numbers of their own. cluster: the notice.
contracts : in Chinese, 30 frames of 12 clauses of random words. A contract fills in two names, a
    date and a sum, and replaces 1 to 4 clauses; half have drafts with one other clause. cluster:
    the contract.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

SEED = 20261128
FIELDS = (
    "Family name",
    "Given name",
    "Date of birth",
    "Street and number",
    "Town",
    "Postcode",
    "Telephone",
    "E-mail",
    "Nationality",
    "Employer",
    "Occupation",
    "Since",
    "Monthly income",
    "Bank account",
    "Number of children",
    "Rent",
    "Reference",
    "Place and date",
)
SYLLABLES = ("ba", "den", "mor", "ri", "tel", "ka", "son", "ul", "ver", "mi", "gra", "lo")


class Document(NamedTuple):
    """A line of a file."""

    id: str
    text: str
    cluster: str


def _name(draw: random.Random) -> str:
    return "".join(draw.choices(SYLLABLES, k=draw.randint(2, 3))).capitalize()


def _date(draw: random.Random) -> str:
    return f"{draw.randint(1, 28)}.{draw.randint(1, 12)}.{draw.randint(1950, 2026)}"


def _value(field: str, draw: random.Random) -> str:
    """Return an entry of a field: a name, a date or a number."""
    if field in ("Date of birth", "Since"):
        return _date(draw)
    if field == "Place and date":
        return f"{_name(draw)}, {_date(draw)}"
    if field == "E-mail":
        return f"{_name(draw).lower()}@{_name(draw).lower()}.example"
    if field == "Street and number":
        return f"{_name(draw)} Road {draw.randint(1, 200)}"
    if field in ("Postcode", "Telephone", "Monthly income", "Bank account", "Rent", "Reference"):
        return str(draw.randint(1_000, 99_999_999))
    return str(draw.randint(0, 6)) if field == "Number of children" else _name(draw)


def forms(paragraphs: Sequence[str]) -> Iterator[Document]:
    """Yield the forms of 600 people."""
    draw = random.Random(SEED)
    instructions = draw.sample(paragraphs, 2)
    for person in range(600):
        values = {field: _value(field, draw) for field in FIELDS}
        for copy in range(draw.choice((1, 1, 1, 1, 2, 3))):
            changed = draw.sample(FIELDS, draw.randint(0, 3)) if copy else []
            values |= {field: _value(field, draw) for field in changed}
            lines = [f"{field}: {value}" for field, value in values.items()]
            text = "\n".join(["Application", instructions[0], *lines, instructions[1]])
            yield Document(f"{person}-{copy}", text, str(person))


def sentences_of(paragraphs: Sequence[str]) -> list[str]:
    """Return the sentences of 6 to 40 words in paragraphs, sorted, each once."""
    parts = (part for text in paragraphs for part in re.split(r"(?<=[.!?])\s+", text))
    joined = (" ".join(part.split()) for part in parts)
    return sorted({part for part in joined if part[-1:] == "." and 6 <= len(part.split()) <= 40})


def letters(paragraphs: Sequence[str]) -> Iterator[Document]:
    """Yield the letters of 25 offices."""
    draw = random.Random(SEED)
    sentences = sentences_of(paragraphs)
    for office in range(25):
        opening, *closing = draw.sample(paragraphs, 4)
        for letter in range(draw.randint(5, 40)):
            body = " ".join(draw.sample(sentences, draw.randint(2, 6)))
            for copy in range(draw.choice((1, 1, 2))):
                head = f"{_date(draw)}\n\nDear {draw.choice(('Mr', 'Ms'))} {_name(draw)},"
                text = "\n\n".join([head, opening, body, *closing])
                yield Document(f"{office}-{letter}-{copy}", text, f"{office}-{letter}")


def editions(paragraphs: Sequence[str]) -> Iterator[Document]:
    """Yield works, each in one to four editions."""
    draw = random.Random(SEED)
    sentences = sentences_of(paragraphs)
    words = sorted({word for sentence in sentences for word in sentence.split()})
    for work in range(350):
        lines = draw.sample(sentences, draw.randint(12, 30))
        for edition in range(draw.randint(1, 4)):
            share = draw.uniform(0.08, 0.3) * bool(edition)
            others: dict[str, str] = {}
            shown = []
            for word in " ".join(lines).split():
                # An edition decides once about a word.
                if word not in others:
                    others[word] = draw.choice(words) if draw.random() < share else word
                shown.append(others[word])
            yield Document(f"{work}-{edition}", " ".join(shown), str(work))


def reports(paragraphs: Sequence[str]) -> Iterator[Document]:
    """Yield the reports of an agency as papers print them."""
    draw = random.Random(SEED)
    sentences = sentences_of(paragraphs)
    papers = [(_name(draw), draw.choice(sentences)) for _ in range(12)]
    for report in range(300):
        body = draw.sample(paragraphs, draw.randint(4, 9))
        for paper in draw.sample(range(len(papers)), draw.randint(1, 4)):
            name, closing = papers[paper]
            first = draw.choice(sentences)
            length = draw.randint(max(2, len(body) // 2), len(body))
            headline = " ".join(draw.choice(sentences).split()[:7])
            text = "\n\n".join([name, headline, first, *body[:length], closing])
            yield Document(f"{report}-{paper}", text, str(report))


def adverts(paragraphs: Sequence[str]) -> Iterator[Document]:
    """Yield the vacancies of firms."""
    draw = random.Random(SEED)
    sentences = sentences_of(paragraphs)
    for firm in range(50):
        name = _name(draw)
        about = draw.choice(paragraphs)
        benefits = draw.sample(sentences, 3)
        for vacancy in range(draw.randint(1, 10)):
            duties = [f"- {duty}" for duty in draw.sample(sentences, draw.randint(4, 9))]
            title = f"{_name(draw)} engineer (m/f/d)"
            for post in range(draw.choice((1, 2, 3))):
                place = f"{_name(draw)}, {_date(draw)}, number {draw.randint(1000, 99999)}"
                text = "\n".join([f"{name}: {title}", place, about, *duties, *benefits])
                yield Document(f"{firm}-{vacancy}-{post}", text, f"{firm}-{vacancy}")


def revisions(paragraphs: Sequence[str]) -> Iterator[Document]:
    """Yield pages, each in one to six revisions."""
    draw = random.Random(SEED)
    sentences = sentences_of(paragraphs)
    notice = draw.choice(paragraphs)
    for page in range(300):
        lines = draw.sample(sentences, draw.randint(8, 20))
        for revision in range(draw.randint(1, 6)):
            for _ in range(draw.randint(1, max(1, len(lines) // 6)) if revision else 0):
                place = draw.randrange(len(lines))
                # One of: delete a sentence, replace it, add one before it.
                lines[place : place + draw.randint(0, 1)] = draw.sample(
                    sentences, draw.randint(0, 1)
                )
                lines = lines or draw.sample(sentences, 1)
            yield Document(f"{page}-{revision}", "\n".join([*lines, notice]), str(page))


def verses(paragraphs: Sequence[str]) -> Iterator[Document]:
    """Yield short texts in one to four translations."""
    draw = random.Random(SEED)
    words = sorted({word for sentence in sentences_of(paragraphs) for word in sentence.split()})
    for verse in range(400):
        first = draw.choices(words, k=draw.randint(10, 25))
        for number in range(draw.randint(1, 4)):
            share = draw.uniform(0.33, 0.5) * bool(number)
            shown = [draw.choice(words) if draw.random() < share else word for word in first]
            yield Document(f"{verse}-{number}", " ".join(shown), str(verse))


def minutes(paragraphs: Sequence[str]) -> Iterator[Document]:
    """Yield the minutes of 30 committees, and their drafts."""
    draw = random.Random(SEED)
    sentences = sentences_of(paragraphs)
    for committee in range(30):
        items = draw.sample(paragraphs, 4)
        for meeting in range(draw.randint(3, 20)):
            own = draw.sample(sentences, draw.randint(3, 8))
            date = _date(draw)
            for version in range(draw.choice((1, 2))):
                shown = " ".join(own[version:])
                if version:
                    changed = [
                        _name(draw) if draw.random() < 0.02 else word for word in shown.split()
                    ]
                    shown = " ".join(changed)
                text = "\n\n".join([f"Meeting of {date}", *items[:3], shown, items[3]])
                yield Document(f"{committee}-{meeting}-{version}", text, f"{committee}-{meeting}")


def notices(paragraphs: Sequence[str]) -> Iterator[Document]:
    """Yield short notices of several offices."""
    draw = random.Random(SEED)
    sentences = sentences_of(paragraphs)
    for notice in range(60):
        words = " ".join(draw.sample(sentences, 3)).split()[: draw.randint(20, 40)]
        places = draw.sample(range(len(words)), draw.randint(2, 4))
        for office in range(draw.randint(1, 12)):
            shown = list(words)
            for place in places:
                shown[place] = draw.choice((_name(draw), _date(draw), str(draw.randint(10, 9999))))
            yield Document(f"{notice}-{office}", " ".join(shown), str(notice))


def _chinese(draw: random.Random, count: int) -> str:
    """Return random Chinese characters."""
    return "".join(chr(draw.randint(0x4E00, 0x57FF)) for _ in range(count))


def contracts(paragraphs: Sequence[str]) -> Iterator[Document]:
    """Yield Chinese contracts of 30 frames."""
    draw = random.Random(SEED)
    words = [_chinese(draw, 2) for _ in range(1500)]

    def clause() -> str:
        return "".join(draw.choices(words, k=draw.randint(8, 25))) + "。"

    for frame in range(30):
        frame_clauses = [clause() for _ in range(12)]
        for contract in range(draw.randint(3, 15)):
            clauses = list(frame_clauses)
            for place in draw.sample(range(12), draw.randint(1, 4)):
                clauses[place] = clause()
            head = (
                f"甲方：{_chinese(draw, 3)}\n乙方：{_chinese(draw, 3)}\n{draw.randint(1, 28)}日，"
                f"{draw.randint(1000, 99999)}元\n"
            )
            for version in range(draw.choice((1, 1, 2, 3))):
                if version:
                    clauses[draw.randrange(12)] = clause()
                text = head + "\n".join(clauses)
                yield Document(f"{frame}-{contract}-{version}", text, f"{frame}-{contract}")


GENERATORS = (
    forms,
    letters,
    editions,
    reports,
    adverts,
    revisions,
    verses,
    minutes,
    notices,
    contracts,
)
