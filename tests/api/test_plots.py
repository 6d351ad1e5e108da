"""The charts of results, as SVG text and as files; what a notebook shows of a result is escaped."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli
from neardup.errors import InputError, OutputError

WORDS = [f"w{i}" for i in range(40)]
TEXTS = [
    " ".join([*WORDS[: 40 - changed], *(f"x{i}" for i in range(changed))])
    for changed in (0, 1, 2, 4, 20)
]
METHOD = neardup.MinHash(ngram=1, threshold=0.6, num_bands=32, rows_per_band=1)
SVG = "{http://www.w3.org/2000/svg}"


def titles(drawing: str) -> list[str]:
    """Return what the marks of a drawing show on hover. Fails if it is not well-formed XML."""
    root = ElementTree.fromstring(drawing)
    assert root.tag == f"{SVG}svg"
    return [title.text or "" for title in root.iter(f"{SVG}title")]


def test_a_result_plots_the_similarities_of_its_removals(tmp_path: Path) -> None:
    result = neardup.dedup(TEXTS, method=METHOD)
    drawing = result.plot(tmp_path / "plot.svg")
    shown = [title for title in titles(drawing) if not title.endswith(": 0")]
    assert (
        sum(int(title.rsplit(": ", 1)[1]) for title in shown)
        == result.report["counts"]["removed"]
        == 3
    )
    assert (tmp_path / "plot.svg").read_text(encoding="utf-8") == drawing + "\n"
    assert drawing._repr_html_() == drawing
    result.plot(tmp_path / "plot.svg")  # an existing file is replaced


def test_without_a_similarity_the_distances_are_plotted() -> None:
    method = neardup.SimHash(ngram=1, max_distance=16, confirm="hamming")
    result = neardup.dedup(TEXTS, method=method)
    assert len(titles(result.plot())) == len(result.report["distances"]) == 17
    assert titles(result.plot())[2].endswith(" at distance 2")


def test_a_plot_of_another_limit_shows_its_removals() -> None:
    result = neardup.dedup(TEXTS, method=METHOD, rethreshold=True).rethreshold(0.9)
    assert (
        sum(int(title.rsplit(": ", 1)[1]) for title in titles(result.plot()))
        == result.removed.num_rows
        == 2
    )


def test_there_is_no_plot_without_near_duplicates_or_of_another_format(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to plot: the result has no near-duplicates"):
        neardup.dedup(["a b", "A b", "other"]).plot(tmp_path / "plot.svg")
    assert not (tmp_path / "plot.svg").exists()
    with pytest.raises(OutputError, match=r"must end in .svg"):
        neardup.dedup(TEXTS, method=METHOD).plot(tmp_path / "plot.png")


def test_a_sweep_plots_the_removals_at_each_threshold(tmp_path: Path) -> None:
    result = neardup.sweep(TEXTS, thresholds=[0.5, 0.9], method=METHOD, plot=tmp_path / "plot.svg")
    assert titles(result.plot()) == [
        "threshold 0.5: 3 documents removed, 0 of them copies, 2 kept",
        "threshold 0.9: 2 documents removed, 0 of them copies, 3 kept",
    ]
    assert (tmp_path / "plot.svg").read_text(encoding="utf-8") == result.plot() + "\n"
    with pytest.raises(OutputError, match=r"must end in .svg"):
        neardup.sweep("no such file", plot=tmp_path / "plot.png")


def test_the_command_writes_the_plot_of_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("\n".join(TEXTS))
    plot = tmp_path / "plot.svg"
    result = CliRunner().invoke(
        cli, ["sweep", str(tmp_path / "in.txt"), "--ngram", "1", "--plot", str(plot)]
    )
    assert result.exit_code == 0, result.output
    assert len(titles(plot.read_text())) == 10


def test_a_notebook_shows_results_escaped() -> None:
    table = pa.table(
        {"text": [*TEXTS], "id": [f"<img src=x{i} onerror=alert()>" for i in range(len(TEXTS))]}
    )
    pairs = neardup.find_pairs(table, method=METHOD)
    html = pairs._repr_html_()
    assert "<img" not in html
    assert html.count("<tr>") == 1 + pairs.pairs.num_rows
    assert "&lt;img src=x0 onerror=alert()&gt;" in html
    assert "<table" not in neardup.find_pairs(["a", "b"])._repr_html_()
    sweep = neardup.sweep(table, thresholds=[0.5], method=METHOD)
    assert "<svg" in sweep._repr_html_()
    assert "<td>3</td>" in sweep._repr_html_()
    for plan in (
        neardup.plan(documents=1e6),
        neardup.plan(documents=1e6, method="simhash", engine="memory"),
    ):
        assert plan._repr_html_().startswith("<p>1,000,000 documents: ")
        assert ("<svg" in plan._repr_html_()) == (plan.bands is not None)


def test_a_notebook_shows_the_first_pairs_of_many() -> None:
    html = neardup.find_pairs(["a b c d e f"] * 6)._repr_html_()
    assert html.count("<tr>") == 11
    assert "<p>… 5 more</p>" in html


def test_a_curve_of_one_threshold_is_plotted(tmp_path: Path) -> None:
    table = pa.table({"text": ["a b c", "a b c", "d e f"], "cluster": ["1", "1", "2"]})
    result = neardup.evaluate(table, curve_from=1, plot=tmp_path / "plot.svg")
    labels = ElementTree.parse(tmp_path / "plot.svg").getroot().iter(f"{SVG}text")
    assert [label.text for label in labels if label.get("y") == "213"] == ["1"]
    assert "<svg" in result._repr_html_()
