"""Files may have any name: with colons, with line separators, or not UTF-8; the locale makes no
difference.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import neardup

ROWS = [
    {"id": "1", "text": "one two three four five six"},
    {"id": "2", "text": "one two three four five six"},
]
NAMES = {
    "colons": "out-2026-01-01T12:00:00",
    "a scheme": "s3:out",
    "spaces and marks": "a b?c#d%20[e]",
    "a line separator": "a\u2028b\x85c",
    "not UTF-8": os.fsdecode(b"caf\xe9"),
}
with_every_name = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))


@with_every_name
def test_an_output_folder_may_have_any_name(name: str) -> None:
    result = neardup.dedup(Path("in.jsonl"), output=Path(name))
    neardup.cluster(Path("in.jsonl"), output=Path(name), overwrite=True)
    neardup.remove_passages(Path("in.jsonl"), output=Path(name), overwrite=True)
    neardup.find_contamination(
        Path("in.jsonl"), Path("in.jsonl"), output=Path(name), item_columns="text", overwrite=True
    )
    neardup.dedup(Path("in.jsonl"), output=Path(name), overwrite=True)
    assert result.report["counts"]["removed"] == 1
    assert sorted(path.name for path in Path(name).iterdir()) == [
        *("kept", "rejected.jsonl", "removed.parquet", "report.html", "report.json")
    ]


@with_every_name
@pytest.mark.parametrize("suffix", [".parquet", ".jsonl", ".csv"])
def test_an_output_file_may_have_any_name(name: str, suffix: str) -> None:
    path = Path(name + suffix)
    neardup.find_pairs(Path("in.jsonl"), output=path)
    assert path.stat().st_size > 0


@with_every_name
def test_files_of_fingerprints_and_frequencies_may_have_any_name(name: str) -> None:
    path = Path(f"{name}.parquet")
    neardup.sign(Path("in.jsonl"), method="simhash", output=path)
    assert neardup.find_pairs(path, max_distance=3).pairs.num_rows == 1
    assert len(neardup.Fingerprints.open(path)) == 2
    neardup.document_frequencies(Path("in.jsonl")).save(path)
    assert neardup.IdfTable.open(path).num_documents == 2


@with_every_name
@pytest.mark.parametrize(
    "suffix",
    [
        ".parquet",
        ".jsonl.zst",
        *(pytest.param(each, marks=pytest.mark.slow) for each in (".arrow", ".jsonl", ".csv")),
        pytest.param(".jsonl.gz", marks=pytest.mark.slow),
    ],
)
def test_an_input_may_have_any_name_and_is_kept_under_it(name: str, suffix: str) -> None:
    path = Path("data", name + suffix)
    path.parent.mkdir()
    table = pa.Table.from_pylist(ROWS)
    with open(path, "wb") as file:
        if suffix == ".parquet":
            pq.write_table(table, file)
        elif suffix == ".arrow":
            pyarrow.feather.write_feather(table, file)
        elif suffix == ".csv":
            pyarrow.csv.write_csv(table, file)
        else:
            compress = {".jsonl": bytes, ".jsonl.zst": _zstd, ".jsonl.gz": gzip.compress}[suffix]
            file.write(compress(Path("in.jsonl").read_bytes()))
    neardup.dedup(Path("data"), output="out")
    assert [kept.name for kept in Path("out/kept").iterdir()] == [path.name]
    assert neardup.dedup(Path("out/kept"), output="again").report["counts"]["read"] == 1


def _zstd(data: bytes) -> bytes:
    return pa.compress(data, "zstd", asbytes=True)


@pytest.mark.parametrize(
    "name", ["x\u2028y.jsonl", "x\u2029y.jsonl", "x\x85y.jsonl", "é漢.jsonl", "x\x1cy\x0cz.jsonl"]
)
def test_rejected_rows_of_a_file_with_any_name_are_listed(name: str) -> None:
    Path("data").mkdir()
    Path("data", name).write_text(json.dumps(ROWS[0]) + "\n{bad\n")
    for report in (
        neardup.find_pairs(Path("data"), max_unreadable=1).report,
        neardup.remove_passages(Path("data"), max_unreadable=1).report,
        neardup.find_contamination(ROWS_OF_ITEMS, Path("data"), max_unreadable=1).report,
    ):
        assert [row["file"] for row in report["rejected"]] == [f"data/{name}"]


ROWS_OF_ITEMS = pa.table(
    {"question": ["one two three four five six seven eight nine ten eleven twelve thirteen"]}
)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["find-pairs", "evaluate", "passages", "contamination"])
def test_a_locale_that_is_not_utf_8_makes_no_difference(command: str) -> None:
    Path("data").mkdir()
    rows = [row | {"label": 1} for row in ROWS]
    Path("data", "é漢\u2028.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows) + "{bad\n"
    )
    arguments = {
        "find-pairs": ["data", "-o", "pairs.jsonl"],
        "evaluate": ["data", "--label", "label"],
        "passages": ["data", "-o", "out"],
        "contamination": ["in.jsonl", "--item-columns", "text", "--corpus", "data", "-o", "out"],
    }[command]
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    run = [
        sys.executable,
        "-m",
        "neardup",
        command,
        *arguments,
        "--json",
        "--max-unreadable",
        "100%",
    ]
    ended = subprocess.run(run, env=environment, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert [row["file"] for row in json.loads(ended.stdout)["rejected"]] == ["data/é漢\u2028.jsonl"]


def test_ids_to_remove_are_one_a_line(capsys) -> None:
    from click.testing import CliRunner

    from neardup.cli.main import cli

    ids = ["a\u2028b", "c\x85d", "e\x0cf", "é", "plain"]
    with neardup.Index.create("an.index") as index:
        for number, id in enumerate(ids):
            index.add(f"text {number} of its own", id=id)
    Path("ids.txt").write_bytes("\ufeff".encode() + "\r\n".join(ids).encode())
    ended = CliRunner().invoke(cli, ["index", "remove", "an.index", "--ids-from", "ids.txt"])
    assert ended.exit_code == 0, ended.output
    assert "5 documents" in ended.output
    Path("latin.txt").write_bytes(b"caf\xe9\n")
    ended = CliRunner().invoke(cli, ["index", "remove", "an.index", "--ids-from", "latin.txt"])
    assert ended.exit_code == 2
    assert "latin.txt is not UTF-8: byte 3 is 0xe9" in ended.output
