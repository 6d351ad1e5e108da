"""Compare two texts or files; explain the fingerprint of one."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from neardup.documents.batch import Columns, Losses, Rejected
from neardup.documents.decompressed import compression_of
from neardup.documents.pages import html_of, media_type_of_name
from neardup.errors import InputError
from neardup.features.idf import IdfTable
from neardup.features.vectors import array_of_documents, texts_of
from neardup.files import AnyPath
from neardup.fingerprints.explain import Explanation, SignatureExplanation, WeightedFeature
from neardup.formats.registry import FORMATS, format_of
from neardup.methods.registry import method_of
from neardup.results import Comparison
from neardup.runs.input_files import list_inputs
from neardup.settings.constraints import check_path
from neardup.settings.methods import PAGE_TOKENS, MethodSettings, method_named
from neardup.verify import comparison

Text = AnyPath | Sequence[float]


def compare(
    left: Text,
    right: Text,
    *,
    method: MethodSettings | str | None = None,
    threshold: float | None = None,
    max_distance: int | None = None,
) -> Comparison:
    """Compare two texts: their similarity, and their differences.

    Parameters
    ----------
    left, right : a text, or a file as an os.PathLike such as pathlib.Path: UTF-8, an HTML page
        (.html, .htm, .xhtml) in any encoding, or .docx, .odt, .epub, .eml, .mbox of one message,
        .ipynb or .pdf (extra office); or a list of numbers, or its JSON, if the method compares
        vectors.
    method, threshold, max_distance : as in `dedup`. Default: structure for two HTML files,
        otherwise minhash. similarity="containment" measures how much of `left` is in `right`.

    Returns
    -------
    Comparison

    Raises
    ------
    SettingError
        As in `dedup`.
    InputError
        If a file cannot be read or is not UTF-8, or a text is not valid Unicode.

    Examples
    --------
    >>> import neardup
    >>> method = neardup.MinHash(ngram=2)
    >>> neardup.compare("a rose is a rose", "a rose is a tulip", method=method).similarity
    0.75
    """
    _warn_of_names(left, right)
    if method is None:
        method = default_method(left, right)
    method = method_named(method, threshold, max_distance)
    left_text = text_of(left, method.vector_length)
    right_text = text_of(right, method.vector_length)
    chosen = method_of(method).resolve()
    measures = chosen.compare(left_text, right_text)
    compares_tags = getattr(method, "tokens", None) in PAGE_TOKENS
    left_shown, right_shown = comparison.shown(left_text, right_text, method.shingling)
    return Comparison(
        duplicate=measures.duplicate,
        similarity=measures.jaccard if measures.similarity is None else measures.similarity,
        threshold=method.threshold,
        measures=measures,
        left=left_shown,
        right=right_shown,
        bands=chosen.lookup.bands,
        _mark=partial(comparison.mark, left_shown, right_shown, method.shingling),
        _pages=(left_text, right_text) if compares_tags else None,
        _compare=compare,  # passed, because `results` must not import this module
    )


def explain(
    text: str | Iterable[str] | Iterable[WeightedFeature],
    *,
    method: MethodSettings | str = "simhash",
    idf: IdfTable | None = None,
) -> Explanation | SignatureExplanation:
    """Return the computation of a fingerprint: the votes of SimHash, or the minima of MinHash.

    Parameters
    ----------
    text : a text, which the method cuts into features; or features, used unchanged: strings, or for
        SimHash pairs of a string and its weight, added up for repeated features.
    method : settings of fingerprints, or their name.
    idf : the document frequencies, if the weights use them. Default: of the method.

    Returns
    -------
    neardup.lsh.Explanation of a SimHash fingerprint, or neardup.lsh.SignatureExplanation

    Raises
    ------
    InputError
        If there are no features.
    SettingError
        If the features of the method have no words to show (shingles of tags, vectors), or it needs
        the document frequencies of a corpus and has none.

    Examples
    --------
    >>> explain("to be or not to be").counts
    (2, 2, 1, 1)
    """
    return method_of(method_named(method)).explain(text, idf)


def _warn_of_names(left: Text, right: Text) -> None:
    """Warn if two texts are the names of files.

    A file is compared only if it is an os.PathLike: a string is always a text, so the result does
    not depend on the files of the current folder.
    """
    # A longer string is a text, and is not looked up.
    names = [
        text
        for text in (left, right)
        if isinstance(text, str) and len(text) < 256 and "\0" not in text
    ]
    if len(names) == 2 and all(map(os.path.isfile, names)):
        warnings.warn(
            f"compare compared the strings {left!r} and {right!r}, which are also names of files. "
            f"To compare the files, pass pathlib.Path({left!r}).",
            stacklevel=3,
        )


def default_method(left: Text, right: Text) -> str:
    """Return the name of the method for two texts or files, if none is given."""
    return "structure" if _is_page(left) and _is_page(right) else "minhash"


def decode_text(content: bytes, name: str) -> str:
    """Return the text of a file of UTF-8, with or without a byte order mark.

    Parameters
    ----------
    content : the bytes of the file.
    name : the name of the file in the error.

    Raises
    ------
    InputError
        If the content is not UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        compression = compression_of(content)
        if compression is not None:
            raise InputError(
                f"{name} is compressed by {compression}. Decompress it first."
            ) from error
        # The codec counts from after a byte order mark.
        position = len(content) - len(error.object) + error.start
        raise InputError(
            f"{name} is not UTF-8: byte {position} is 0x{content[position]:02x}. Convert it "
            "first, for example with `iconv -f LATIN1 -t UTF-8`."
        ) from error


def text_of(text: Text, vector_length: int | None = None) -> str:
    """Return a text, or the text of a file, as `compare` reads it.

    Parameters
    ----------
    vector_length : the length of vectors, 0 for any; None if the method compares texts. The text of
        a list of numbers is its JSON.

    Raises
    ------
    InputError
        As in `compare`.
    """
    if vector_length is not None and not isinstance(text, (str, os.PathLike)):
        # Vectors are compared as the JSON of their numbers.
        return str(texts_of(array_of_documents([text], vector_length))[0])
    if isinstance(text, str):
        return text
    if not isinstance(text, os.PathLike):
        raise InputError(
            f"A text must be a str, and a file a pathlib.Path: got {type(text).__name__}, "
            f"{text!r:.80}. Pass one of the two."
        )
    name = check_path("The path of a text", text)
    # A folder or a pattern may have the suffix of a document.
    if _is_document(name) and os.path.isfile(name):
        return _text_of_document(name)
    try:
        content = Path(name).read_bytes()
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}. Pass a text file.") from error
    if not _is_page(text):
        return decode_text(content, name)
    # In the encoding that the page declares.
    page, _ = html_of(content, media_type=media_type_of_name(name))
    return page.decode("utf-8")


def _is_document(name: str) -> bool:
    """Return whether the text of a file is not its bytes: documents of office programs, books,
    messages, PDF files, notebooks.
    """
    known, _ = format_of(name)
    if known is None:
        return False
    found = FORMATS[known]
    is_markup = found.contents in ("binary", "mail") and found.unit in ("file", "message")
    return is_markup or known == "notebook"


def _text_of_document(name: str) -> str:
    """Return the text of a file that is one document. Raises InputError if it cannot be read, or
    has several.
    """
    (file,) = list_inputs([name])
    rejected: list[Rejected] = []
    losses = Losses()
    texts: list[str] = []
    for batch in file.read(Columns("text"), rejected.append):
        losses.add_documents(name, file.format, batch.text)
        texts += batch.text.to_pylist()
        if len(texts) > 1:
            raise InputError(
                f"{name} has several messages, and compare takes one document. Save the message "
                "as .eml, or find similar ones with find-pairs."
            )
    if losses.textless_files:
        raise InputError(f"{name} has no text layer, 0 words. Add one, for example by ocrmypdf.")
    if not texts:
        reason = rejected[0].reason if rejected else "it is empty"
        raise InputError(f"{name} cannot be read: {reason}. Pass a text file.")
    return texts[0]


def _is_page(text: Text) -> bool:
    return isinstance(text, os.PathLike) and os.fsdecode(text).lower().endswith(
        (".html", ".htm", ".xhtml")
    )
