"""Results can be stored and sent to other processes; the names of options are types."""

from __future__ import annotations

import dataclasses
import pickle
import typing
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup.errors import OutputError
from neardup.settings import run
from neardup.settings.constraints import constraints_of
from neardup.settings.run import IndexSettings, Storage

TEXTS = [
    "one two three four five six",
    "One two three four five six!",
    "another text about something else",
]
LABELLED = pa.table({"text": TEXTS, "cluster": ["1", "1", "2"]})


def index_of_texts() -> neardup.Index:
    index = neardup.Index.create("memory:")
    index.add_many_if_new(TEXTS)
    return index


RESULTS: dict[str, Callable[[], object]] = {
    "Deduplication": lambda: neardup.dedup(TEXTS),
    "Deduplication of a file": lambda: neardup.dedup(written(), output="out"),
    "Deduplication with every pair": lambda: neardup.dedup(TEXTS, rethreshold=True),
    "Clustering": lambda: neardup.cluster(TEXTS),
    "DuplicatePairs": lambda: neardup.find_pairs(TEXTS),
    "Evaluation": lambda: neardup.evaluate(LABELLED, label="cluster"),
    "Sweep": lambda: neardup.sweep(TEXTS, thresholds=[0.5, 0.8]),
    "Plan": lambda: neardup.plan(documents=1e6),
    "Comparison": lambda: neardup.compare(*TEXTS[:2]),
    "Comparison of pages": lambda: neardup.compare("<p>a b c", "<p>a<p>b", method="structure"),
    "Signatures": lambda: neardup.sign(TEXTS),
    "Fingerprints": lambda: neardup.sign(TEXTS, method="simhash"),
    "IdfTable": lambda: neardup.document_frequencies(TEXTS),
    "Explanation": lambda: neardup.explain(TEXTS[0]),
    "SignatureExplanation": lambda: neardup.explain(TEXTS[0], method="minhash"),
    "Answer": lambda: index_of_texts().add_if_new(TEXTS[0], id="a", payload="p"),
    "Hits": lambda: index_of_texts().query(TEXTS[0]),
    "Document": lambda: index_of_texts().get(index_of_texts().add_if_new("x").id),
}


def written() -> str:
    Path("in.txt").write_text("\n".join(TEXTS))
    return "in.txt"


def shown(value: object) -> object:
    """Return a value as what compares."""
    return value.tolist() if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("name", RESULTS)
def test_results_can_be_pickled(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = RESULTS[name]()
    again = pickle.loads(pickle.dumps(result))
    assert type(again) is type(result)
    assert repr(again) == repr(result)
    for attribute in (
        "removed",
        "pairs",
        "documents",
        "clusters",
        "kept",
        "mask",
        "values",
        "report",
        "left_passages",
    ):
        if hasattr(result, attribute):
            assert shown(getattr(again, attribute)) == shown(getattr(result, attribute)), attribute


@pytest.mark.parametrize(
    ("settings", "types"),
    [
        (run.SelectionSettings, {"linkage": run.Linkage}),
        (run.OutputSettings, {"write": run.OutputKind, "lang": run.Language}),
        (run.RunSettings, {"on_error": run.OnError}),
        (IndexSettings, {"storage": Storage}),
    ],
)
def test_the_accepted_names_of_an_option_are_its_type(settings, types):
    hints = typing.get_type_hints(settings)
    named = {
        field.name
        for field in dataclasses.fields(settings)
        if constraints_of(settings)[field.name].choices
    }
    assert named - {"keep"} == types.keys()
    for name, kind in types.items():
        assert hints[name] == kind
        assert tuple(constraints_of(settings)[name].choices) == typing.get_args(kind)


def test_documents_without_an_id_repeat_none():
    table = pa.table(
        {"id": pa.array([None, None, "x"], pa.string()), "text": ["a b c", "d e f", "g h i"]}
    )
    assert neardup.dedup(table).report["warnings"] == []
    assert neardup.dedup(table, id_column="id").report["counts"]["kept"] == 3


def test_a_folder_that_is_no_output_is_not_overwritten(tmp_path):
    (tmp_path / "mine").mkdir()
    neardup.dedup(["a b c"], output=tmp_path / "mine", overwrite=True)  # it was empty
    neardup.dedup(["a b c"], output=tmp_path / "mine", overwrite=True)
    (tmp_path / "mine" / "report.json").unlink()
    with pytest.raises(OutputError, match=r"mine is not replaced: it has no report\.json"):
        neardup.dedup(["a b c"], output=tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine" / "removed.parquet").exists()
