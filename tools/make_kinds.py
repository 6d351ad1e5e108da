"""Make labelled collections of kinds that the sets of docs/accuracy.md do not have, to try rules on
unseen texts.

    python tools/make_kinds.py kinds/ --man /usr/share/man OTHER_RELEASE/share/man --python
        LIB_OF_3.8 LIB_OF_3.12 \\ --wheels wheels/ --doc /usr/share/doc

Writes kinds/KIND.jsonl, a document a line with id, text and cluster: `neardup evaluate
kinds/manuals.jsonl` reads it, and any tool that takes a folder of labelled files. A kind without
enough of its source is left out. The same sources give the same files.

From texts of this machine; the label is the name that releases share:

manuals : pages of man1 in the folders of --man, without their macros; cluster: the name of the
    page, so that two releases of a program are one. Name no folders of translations.
docstrings : all docstrings of a module below the folders of --python, which are the libraries of
    several releases; cluster: the path of the module.
readmes : descriptions in the METADATA of wheels and installed packages below --wheels, several
    versions of each; `pip download --no-deps --dest wheels/ NAME==VERSION` gets them. cluster: the
    name of the package.
changelogs : the oldest 20,000 characters of changelog.gz in packages below --doc, and the same
    without the newest tenth and quarter of the lines; cluster: the text of the oldest half, which
    packages of one source share.

records : the paragraphs of packages in the lists of apt given by --apt (Packages, also .lz4 and
    .gz), of several releases. cluster: the name of the package. They are few and short: at least
    100 characters.

Generated from paragraphs of these texts; the rules are the label, and tools/templated_kinds.py has
those of forms, letters, editions, reports, adverts, revisions, verses, minutes, notices and
contracts:

threads : messages of 1 to 4 paragraphs, delivered by one or two lists of three, each with its own
    header and footer. A reply quotes all of the message before it with "> ", and adds 1 or 2
    paragraphs. cluster: the message; a reply is another.
subtitles : 60 lines of up to 60 characters, with times. Other versions of a film are 1 to 90
    seconds late, join the first two of each five lines, leave 3 % of the words out, and replace 1 %
    of the characters. cluster: the film.
products : the paragraph of a series and the 12 numbers of a model, in 1 to 4 shops. A shop has its
    own title, price, closing sentence and one of two wordings, and leaves out up to 3 numbers.
    Models of a series share the paragraph and 8 of the numbers or more. cluster: the model, in all
    its colours.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import hashlib
import json
import random
import re
import sys
import warnings
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from templated_kinds import GENERATORS, Document

SEED = 20261125
MIN_CHARACTERS = 200
SHORT = {"verses": 60, "notices": 60}  # MIN_CHARACTERS of kinds of short texts
LISTS = {
    "users": (
        "To: users@lists.example\n",
        "\n-- \nusers mailing list: to unsubscribe, write to users-leave@lists.example\n",
    ),
    "devel": (
        "To: devel@lists.example\nPrecedence: list\n",
        "\n_______\ndevel@lists.example\nhttp://lists.example/devel\n",
    ),
    "news": ("Newsgroups: comp.misc\nPath: news.example!not-for-mail\n", ""),
}
COLOURS = ("black", "white", "silver", "red")
MAKERS = ("Arden", "Belmont", "Corvid", "Dunmore", "Elster", "Fjord")
TRAITS = (
    *(
        "weight",
        "width",
        "height",
        "depth",
        "battery life",
        "screen size",
        "memory",
        "storage",
        "power",
        "range",
    ),
    *("resolution", "refresh rate"),
)
SHOPS = {
    "{name}: {value}": (
        "Free returns within 30 days.",
        "Order today, shipped tomorrow. All prices include tax.",
    ),
    "{value} {name}": (
        "Two years of warranty from the date of purchase.",
        "Pick it up in one of our stores.",
    ),
}


def manuals(folders: Iterable[Path]) -> Iterator[Document]:
    """Yield the pages of man1 in folders, as text."""
    for folder in folders:
        for path in sorted(folder.glob("man1/*.1*")):
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            lines = [
                line
                for line in data.decode("utf-8", "replace").splitlines()
                if not re.match(r"[.']\s*\\\"", line)
            ]
            text = re.sub(r"(?m)^[.']\s*[A-Za-z]+ ?", "", "\n".join(lines))
            text = (
                re.sub(r"\\f(?:\(..|\[.*?\]|.)|\\&|\\c", "", text)
                .replace("\\-", "-")
                .replace("\\e", "\\")
            )
            yield Document(str(path), text, path.name.removesuffix(".gz"))


def docstrings(folders: Iterable[Path]) -> Iterator[Document]:
    """Yield the docstrings of modules below folders."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            name = path.relative_to(folder).as_posix()
            if re.search(r"(^|/)(site-packages|tests?|idlelib|lib2to3)/", name):
                continue
            try:
                tree = ast.parse(path.read_bytes())
            except (SyntaxError, ValueError):
                continue
            found = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds)]
            yield Document(str(path), "\n\n".join(filter(None, found)), name)


def readmes(folders: Iterable[Path]) -> Iterator[Document]:
    """Yield the descriptions of wheels and installed packages below folders."""
    for folder in folders:
        for path in sorted([*folder.rglob("*.whl"), *folder.rglob("*.dist-info/METADATA")]):
            if path.suffix == ".whl":
                with zipfile.ZipFile(path) as wheel:
                    (name,) = (
                        name
                        for name in wheel.namelist()
                        if re.fullmatch(r"[^/]*\.dist-info/METADATA", name)
                    )
                    data = wheel.read(name)
            else:
                data = path.read_bytes()
            head, _, body = data.decode("utf-8", "replace").replace("\r\n", "\n").partition("\n\n")
            package = re.search(r"(?m)^Name: (.*)$", head)
            yield Document(
                str(path),
                body,
                re.sub(r"[-_.]+", "-", package[1].lower()) if package else str(path),
            )


def changelogs(folders: Iterable[Path]) -> Iterator[Document]:
    """Yield changelogs as they are, and as they were."""
    for folder in folders:
        for path in sorted(folder.glob("*/changelog.gz")):
            if path.is_symlink():
                continue
            lines = (
                gzip.decompress(path.read_bytes()).decode("utf-8", "replace")[-20_000:].splitlines()
            )
            cluster = hashlib.sha256("\n".join(lines[len(lines) // 2 :]).encode()).hexdigest()[:16]
            for share in (0, 10, 25):
                yield Document(
                    f"{path}-{share}", "\n".join(lines[len(lines) * share // 100 :]), cluster
                )


def records(lists: Iterable[Path]) -> Iterator[Document]:
    """Yield the different paragraphs of each package in lists."""
    by_name: dict[str, list[Document]] = defaultdict(list)
    for path in lists:
        with pa.input_stream(str(path)) as stream:
            text = stream.read().decode("utf-8", "replace")
        for paragraph in text.split("\n\n"):
            name = re.match(r"Package: (.*)", paragraph)
            if name is not None:
                shown = re.sub(r"(?m)^(MD5sum|SHA\d+): .*\n?", "", paragraph)
                number = len(by_name[name[1]])
                by_name[name[1]].append(Document(f"{name[1]}-{number}", shown, name[1]))
    for found in by_name.values():
        yield from {document.text: document for document in found}.values()


def threads(paragraphs: list[str]) -> Iterator[Document]:
    """Yield messages and replies, as lists deliver them."""
    draw = random.Random(SEED)
    for thread in range(250):
        quoted = ""
        for message in range(draw.randint(1, 4)):
            own = draw.sample(paragraphs, draw.randint(1, 2) if message else draw.randint(1, 4))
            body = quoted + "\n\n".join(own)
            for name in draw.sample(sorted(LISTS), draw.randint(1, 2)):
                head, foot = LISTS[name]
                text = f"{head}Subject: {'Re: ' * bool(message)}{own[-1][:30]}\n\n{body}{foot}"
                yield Document(f"{thread}-{message}-{name}", text, f"{thread}-{message}")
            quoted = "".join(f"> {line}\n" for line in body.splitlines()) + "\n"


def subtitles(paragraphs: list[str]) -> Iterator[Document]:
    """Yield films, each in one to four versions."""
    draw = random.Random(SEED)
    sentences = sorted(
        {one for text in paragraphs for one in re.findall(r"[A-Z][^.!?\n]{15,59}[.!?]", text)}
    )
    for film in range(300 if len(sentences) >= 60 else 0):
        lines = draw.sample(sentences, 60)
        for version in range(draw.randint(1, 4)):
            late = draw.randint(1, 90) * bool(version)
            shown = lines
            if version:
                joined = [
                    f"{left} {right}" if place % 5 == 0 else left
                    for place, (left, right) in enumerate(pairwise(lines))
                ]
                kept = [line for place, line in enumerate(joined) if place % 5 != 1]
                shown = [
                    " ".join(word for word in line.split() if draw.random() > 0.03) for line in kept
                ]
                shown = [
                    "".join(draw.choice("lI1o0") if draw.random() < 0.01 else sign for sign in line)
                    for line in shown
                ]
            cues = [f"00:{s // 60:02}:{s % 60:02}\n{line}" for s, line in enumerate(shown, late)]
            yield Document(f"{film}-{version}", "\n\n".join(cues), str(film))


def products(paragraphs: list[str]) -> Iterator[Document]:
    """Yield the models of series, as shops describe them."""
    draw = random.Random(SEED)
    shops = [(wording, closing) for wording, closings in SHOPS.items() for closing in closings]
    for series in range(80):
        name = f"{draw.choice(MAKERS)} {series + 100}"
        shared = {trait: draw.randint(10, 9999) for trait in TRAITS}
        about = draw.choice(paragraphs)
        for model in range(draw.randint(2, 5)):
            values = shared | {trait: draw.randint(10, 9999) for trait in draw.sample(TRAITS, 4)}
            for shop in draw.sample(range(len(shops)), draw.randint(1, len(shops))):
                wording, closing = shops[shop]
                left_out = draw.sample(TRAITS, draw.randint(0, 3))
                lines = [
                    wording.format(name=trait, value=values[trait])
                    for trait in TRAITS
                    if trait not in left_out
                ]
                title = (
                    f"{name} model {chr(65 + model)}, {draw.choice(COLOURS)}, "
                    f"{draw.randint(20, 900)}.99"
                )
                text = "\n".join([title, about, *lines, closing])
                yield Document(f"{series}-{model}-{shop}", text, f"{series}-{model}")


def draw_clusters(
    documents: Iterable[Document], most: int, min_characters: int = MIN_CHARACTERS
) -> list[Document]:
    """Return at most so many documents of whole clusters, drawn by a hash; at most half of them
    alone in theirs.
    """
    clusters: dict[str, list[Document]] = defaultdict(list)
    for document in documents:
        if len(document.text) >= min_characters:
            clusters[document.cluster].append(document)
    drawn: list[Document] = []
    for alone, limit in ((False, most), (True, most)):
        limit = min(limit, 2 * len(drawn)) if alone else limit
        for name in sorted(clusters, key=lambda name: hashlib.sha256(name.encode()).digest()):
            if (len(clusters[name]) == 1) == alone and len(drawn) + len(clusters[name]) <= limit:
                drawn += clusters[name]
    return drawn


def main() -> None:
    """Write the collections."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the folder to write to")
    parser.add_argument(
        "--most", type=int, default=2000, help="documents of a kind at most; default 2000"
    )
    real = {
        "man": manuals,
        "python": docstrings,
        "wheels": readmes,
        "doc": changelogs,
        "apt": records,
    }
    for option in real:
        parser.add_argument(f"--{option}", type=Path, nargs="+", default=[], metavar="FOLDER")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", SyntaxWarning)  # of the modules that are parsed
    arguments.folder.mkdir(parents=True, exist_ok=True)
    found = {
        kind.__name__: draw_clusters(kind(getattr(arguments, name)), arguments.most)
        for name, kind in real.items()
    }
    texts = (one for name in ("manuals", "docstrings", "readmes") for one in found[name])
    paragraphs = sorted(
        {part.strip() for one in texts for part in one.text.split("\n\n") if 80 < len(part) < 1200}
    )
    if len(paragraphs) >= 4:
        for make in (threads, subtitles, products, *GENERATORS):
            name = make.__name__
            limit = SHORT.get(name, MIN_CHARACTERS)
            found[name] = draw_clusters(make(paragraphs), arguments.most, limit)
    for name, documents in found.items():
        if documents:
            lines = [
                json.dumps(document._asdict(), ensure_ascii=False) + "\n" for document in documents
            ]
            (arguments.folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
            clusters = len({document.cluster for document in documents})
            sys.stdout.write(f"{name}: {len(documents):,} documents in {clusters:,} clusters\n")


if __name__ == "__main__":
    main()
