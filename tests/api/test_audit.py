"""An audit names what is wrong with removals, and nothing that is not."""

from __future__ import annotations

import gzip
import json
import random
import re
import shutil
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.audit import _gate
from neardup.cli.main import cli
from neardup.errors import ColumnError, InputError, SettingError
from reference.audits import NGRAM, Planted, made_up, verdicts_of, with_changes, with_duplicates
from reference.statistics import most_misses

METHOD = neardup.MinHash(ngram=NGRAM, threshold=0.8, recall=0.9999)  # misses no pair here


def audited(planted: Planted, **options):
    return neardup.audit(planted.texts, kept=planted.kept_texts, method=METHOD, **options)


def correct(rng) -> Planted:
    return with_duplicates(rng)


def shifted(rng) -> Planted:
    """The ids of removed documents are three too high."""
    planted = with_duplicates(rng, 300)
    removed = {number + 3 for number in range(len(planted.texts)) if number not in planted.kept}
    return Planted(planted.texts, [n for n in range(len(planted.texts)) if n not in removed])


def chained(rng) -> Planted:
    """Each third document is similar to the second, and not to the first, which was kept."""
    texts = []
    for _ in range(40):
        first = made_up(rng)
        second = with_changes(first, 9)
        words = second.split()
        words[:9] = [f"y{word}" for word in words[:9]]
        texts += [first, second, " ".join(words)]
    return Planted(texts, list(range(0, len(texts), 3)))


def without_copies(rng) -> Planted:
    """All documents of some groups were removed."""
    planted = with_duplicates(rng)
    pairs = [number for number in planted.kept if number + 1 not in planted.kept]
    gone = [number for number in pairs if number + 1 < len(planted.texts)][:20]
    return Planted(planted.texts, [number for number in planted.kept if number not in gone])


def with_last_copies(rng) -> Planted:
    """The last document of each group was kept."""
    planted = with_duplicates(rng)
    firsts = [*planted.kept[1:], len(planted.texts)]
    return Planted(planted.texts, [number - 1 for number in firsts])


def by_estimate(rng, num_pairs=300) -> Planted:
    """A signature of 64 hashes decided about pairs of every similarity."""
    texts = []
    kept = []
    for _ in range(num_pairs):
        first = made_up(rng)
        num_changes = rng.randrange(0, 40)
        shared = (98 - num_changes) / (98 + num_changes)
        kept.append(len(texts))
        if sum(rng.random() < shared for _ in range(64)) / 64 < 0.8:
            kept.append(len(texts) + 1)
        texts += [first, with_changes(first, num_changes)]
    return Planted(texts, kept)


def at_random(rng) -> Planted:
    """Documents that are like no other were removed."""
    texts = [made_up(rng) for _ in range(200)]
    return Planted(texts, sorted(rng.sample(range(200), 150)))


FAULTS = {
    "a correct run": (correct, set()),
    "shifted ids": (shifted, {"shifted"}),
    "chains": (chained, {"chain"}),
    "all copies gone": (without_copies, {"no_copy_kept"}),
    "the last copy kept": (with_last_copies, {"later_copy_kept"}),
    "an estimate": (by_estimate, {"estimate"}),
    "random rows": (at_random, {"unlike"}),
}
AND_UNLIKE = {"shifted ids": {"unlike", "no_copy_kept", "later_copy_kept"}}
"""Faults that follow from a planted one."""


@pytest.mark.parametrize("name", FAULTS)
def test_each_planted_fault_is_named_and_no_other(name):
    plant, faults = FAULTS[name]
    result = audited(plant(random.Random(5)))
    assert faults <= set(result.faults)
    assert set(result.faults) <= faults | AND_UNLIKE.get(name, set())


def test_a_shift_is_given_as_it_was_made():
    result = audited(shifted(random.Random(6)))
    shift = result.report["faults"][0]
    assert (shift["fault"], shift["offset"], shift["file"]) == ("shifted", 3, None)
    assert shift["documents"] > shift["lost"] / 2


def test_the_mask_of_another_file_is_a_shift_in_the_file(tmp_path):
    rng = random.Random(7)
    collections = [with_duplicates(rng, 150) for _ in range(3)]
    wrong = {0: 1, 1: 0}  # the masks of the first two files are swapped
    kept = []
    for number, planted in enumerate(collections):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"text": planted.texts}), path)
        mask = set(collections[wrong.get(number, number)].kept)
        gone = [
            n for n in range(len(collections[wrong.get(number, number)].texts)) if n not in mask
        ]
        kept += [text for n, text in enumerate(planted.texts) if n not in gone]
    files = [tmp_path / f"{number}.parquet" for number in range(3)]
    result = neardup.audit(files, kept=kept, method=METHOD)
    shifts = {
        fault["file"]: fault["offset"]
        for fault in result.report["faults"]
        if fault["fault"] == "shifted_in_file"
    }
    size = len(collections[0].texts)
    assert shifts == {str(files[0]): -size, str(files[1]): size}


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))]
)
@pytest.mark.parametrize("name", ["a correct run", "chains", "all copies gone", "random rows"])
def test_verdicts_are_those_of_all_comparisons(name, seed):
    planted = FAULTS[name][0](random.Random(seed))
    result = audited(planted)
    expected = verdicts_of(planted.texts, set(planted.kept), 0.8)
    rows = {int(row["id"]): row for row in result.removals.to_pylist()}
    assert set(rows) == set(range(len(planted.texts))) - set(planted.kept)
    for number, row in rows.items():
        verdict, similarity = expected[number]
        assert row["verdict"] == verdict
        assert row["similarity"] == pytest.approx(similarity)


def test_a_clean_run_of_ours_is_sound_as_a_whole(real_texts, tmp_path):
    texts = real_texts("en_licenses", 200_000)
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"id": [f"d{n}" for n in range(len(texts))], "text": texts}), source)
    neardup.dedup(source, output=tmp_path / "out")
    result = neardup.audit(source, kept=tmp_path / "out" / "kept")
    assert result.report["settings"]["match"] == "id"
    assert result.sound == 1.0
    assert result.faults == []
    assert result.report["lost"]["is_exact"]
    assert result.report["ours"]["removed_by_them_only"] == 0
    assert result.report["ours"]["removed_by_us_only"] == 0
    assert result.report["left"]["documents"] == 0


def test_duplicates_left_are_those_that_a_sieve_among_the_kept_removes():
    planted = with_duplicates(random.Random(8))
    result = neardup.audit(planted.texts, kept=planted.texts, method=METHOD)
    assert result.report["left"]["documents"] == len(planted.texts) - len(planted.kept)
    assert result.report["counts"]["judged"] == 0
    assert result.report["left"]["copies"] > 0


class TestMatching:
    TEXTS = ("one two three four", "five six seven eight", "one two three four")

    def original(self, ids=("a", "b", "c")):
        return pa.table({"id": list(ids), "text": list(self.TEXTS)})

    def test_ids_tell_copies_apart(self):
        kept = self.original().slice(1)
        result = neardup.audit(self.original(), kept=kept)
        assert result.removals["id"].to_pylist() == ["a"]
        assert result.faults == ["later_copy_kept"]

    def test_texts_have_a_multiplicity_and_the_first_copies_count_as_kept(self):
        result = neardup.audit(self.original(), kept=list(self.TEXTS[:2]))
        assert result.removals["id"].to_pylist() == ["c"]
        assert result.report["settings"]["match"] == "text"

    def test_repeated_ids_are_not_matched(self):
        result = neardup.audit(self.original("aab"), kept=self.original("aab").slice(0, 2))
        assert result.report["settings"]["match"] == "text"
        assert result.removals["verdict"].to_pylist() == ["copy"]

    def test_rows_without_an_id_are_matched_by_text(self):
        original = self.original(["a", None, "c"])
        result = neardup.audit(original, kept=original.slice(0, 2))
        assert result.report["settings"]["match"] == "text"
        assert result.removals["id"].to_pylist() == ["c"]
        assert result.report["counts"]["unmatched"] == 0

    def test_rows_without_an_id_are_not_counted_as_changed(self):
        kept = self.original(["a", None, "c"]).slice(0, 2)
        original = self.original([None, "a", "c"])
        result = neardup.audit(original, kept=kept, match="id")
        assert result.report["counts"]["changed"] == 1  # a
        assert result.unmatched["row"].to_pylist() == [1]

    def test_a_tool_that_kept_nothing_is_matched_by_ids_too(self):
        result = neardup.audit(self.original(), kept=self.original().slice(0, 0), match="id")
        assert result.removals["verdict"].to_pylist() == ["group", "alone", "group"]

    def test_a_kept_document_that_is_not_in_the_original_is_listed(self):
        kept = pa.table({"text": [self.TEXTS[0], "something that nobody has written"]})
        result = neardup.audit(self.original(), kept=kept)
        assert result.report["counts"]["unmatched"] == 1
        assert result.unmatched.to_pylist() == [{"source_file": "source", "row": 1}]
        assert "1 kept documents are not in the original" in result.report["warnings"][0]

    def test_another_text_under_an_id_is_counted(self):
        kept = pa.table({"id": ["a", "b"], "text": ["one two three four", "another text"]})
        result = neardup.audit(self.original(), kept=kept)
        assert result.report["counts"]["changed"] == 1

    def test_the_files_of_two_folders_are_matched_by_text(self, tmp_path):
        (tmp_path / "original").mkdir()
        for name, text in zip("abc", [*self.TEXTS[:2], self.TEXTS[0] + "!"], strict=True):
            (tmp_path / "original" / f"{name}.txt").write_text(text)
        neardup.dedup(tmp_path / "original", output=tmp_path / "out")
        result = neardup.audit(tmp_path / "original", kept=tmp_path / "out" / "kept")
        assert result.report["settings"]["match"] == "text"
        assert result.removals["verdict"].to_pylist() == ["copy"]
        assert result.lost == 0.0

    def test_nothing_in_common_is_an_error(self):
        with pytest.raises(InputError, match="None of the 1 kept documents is in the original"):
            neardup.audit(self.original(), kept=["nothing of it"])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "An audit needs the kept documents or the removed ids: got none"),
            ({"kept": ["a"], "removed_ids": "x.txt"}, "got both"),
            ({"kept": ["a"], "method": "simhash"}, "An audit measures Jaccard similarity"),
            ({"kept": ["a"], "match": "name"}, "match must be"),
            ({"kept": ["a"], "sample": 0}, "sample must be"),
        ],
    )
    def test_other_options_are_refused(self, options, message):
        with pytest.raises(SettingError, match=message):
            neardup.audit(self.original(), **options)

    def test_ids_are_needed_to_match_by_them(self):
        with pytest.raises(InputError, match="match='id' needs an id column on both sides"):
            neardup.audit(list(self.TEXTS), kept=list(self.TEXTS), match="id")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """The folder of an audit of chains, and of a source that lost 57 of 60 documents."""
    folder = tmp_path_factory.mktemp("audit") / "out"
    planted = chained(random.Random(2))
    texts = [*planted.texts, *at_random(random.Random(3)).texts]
    kept = [*planted.kept_texts, *texts[len(planted.texts) : -57]]
    table = pa.table({"text": texts, "source": ["x"] * (len(texts) - 60) + ["y"] * 60})
    neardup.audit(table, kept=kept, method=METHOD, output=folder, lang="zh")
    return folder


class TestFolder:
    def test_it_has_the_tables_the_report_and_the_page(self, out):
        assert {path.name for path in out.iterdir()} == {
            *("removals.parquet", "left.parquet", "unmatched.parquet"),
            *("rejected.jsonl", "report.json", "report.html"),
        }

    def test_the_page_shows_the_worst_of_each_kind_in_chinese(self, out):
        page = (out / "report.html").read_text()
        assert "链式误删" in page
        assert page.count('id="chain-') == 10
        assert page.count('id="unlike-') == 10

    def test_a_source_that_nearly_vanished_is_marked(self, out):
        sources = json.loads((out / "report.json").read_text())["sources"]
        by_value = {(row["column"], row["value"]): row for row in sources}
        assert by_value["source", "y"]["removed"] == 57
        assert by_value["source", "y"]["vanished"]
        assert not by_value["source", "x"]["vanished"]

    def test_it_may_be_replaced(self, out):
        texts = ["one two three four five", "six seven"]
        neardup.audit(texts, kept=texts, output=out, overwrite=True)


def test_a_text_of_an_id_that_repeats_is_no_changed_text():
    original = pa.table({"id": ["a", "a"], "text": ["one two", "three four"]})
    kept = pa.table({"id": ["a", "a"], "text": ["three four", "one three"]})
    result = neardup.audit(original, kept=kept, match="id")
    assert result.report["counts"]["changed"] == 1


FALSE_ALARM = 1e-6


@pytest.mark.slow
def test_the_interval_of_a_sample_covers_the_lost_share():
    # Few bands: the search misses many sound removals, so that the sample decides.
    method = neardup.MinHash(ngram=NGRAM, threshold=0.8, num_bands=3, rows_per_band=10)
    num_seeds = 100
    misses = 0
    for seed in range(num_seeds):
        rng = random.Random(seed)
        planted = by_estimate(rng)
        kept = planted.kept_texts
        exact = neardup.audit(planted.texts, kept=kept, method=method, sample=1_000_000)
        drawn = neardup.audit(planted.texts, kept=kept, method=method, sample=20)
        assert exact.report["lost"]["is_exact"]
        assert not drawn.report["lost"]["is_exact"]
        assert drawn.report["counts"]["unchecked"] > 0
        low, high = drawn.report["lost"]["low"], drawn.report["lost"]["high"]
        misses += not low <= exact.lost <= high
    assert misses <= most_misses(num_seeds, 0.05, FALSE_ALARM)


def test_the_exact_share_is_that_of_all_comparisons():
    method = neardup.MinHash(ngram=NGRAM, threshold=0.8, num_bands=3, rows_per_band=10)
    planted = by_estimate(random.Random(11), 80)
    result = neardup.audit(planted.texts, kept=planted.kept_texts, method=method)
    expected = verdicts_of(planted.texts, set(planted.kept), 0.8)
    verdicts = [verdict for verdict, _ in expected if verdict != "kept"]
    assert result.lost == pytest.approx(np.mean([verdict == "alone" for verdict in verdicts]))


AUDIT_DATA = Path(__file__).parents[1] / "data" / "audit"


def listed(path, **options):
    """Return the removed ids of an audit of the original files by a list."""
    result = neardup.audit(AUDIT_DATA / "original", removed_ids=path, **options)
    return result.removals["id"].to_pylist(), result


class TestListsOfOthers:
    """Removals and clusters as other tools write them; audit/datatrove is made by datatrove."""

    def test_datatrove_numbers_documents_within_files_without_the_empty_ones(self):
        removed, result = listed(AUDIT_DATA / "datatrove", clusters=AUDIT_DATA / "datatrove")
        # File 1 has no text in its second row, and datatrove calls the third its second document.
        assert removed == ["0-3", "2-0", "2-3"]
        assert result.removals["kept_id"].to_pylist() == ["0-1", "1-2", "0-0"]
        assert result.sound == 1.0
        assert result.report["clusters"] == {
            "clusters": 3,
            "without_kept": 0,
            "with_several_kept": 0,
            "removed_outside": 0,
            "sound_by_own_cluster": 3,
            "sound_by_other_cluster": 0,
            "unknown": 0,
        }

    def test_datatrove_with_other_files_is_refused(self, tmp_path):
        first = AUDIT_DATA / "original" / "0.jsonl"
        with pytest.raises(InputError, match="is about input 2, and the original has 1"):
            neardup.audit(first, removed_ids=AUDIT_DATA / "datatrove")
        (tmp_path / "000000.remove").write_bytes(struct.pack("<I", 4))
        with pytest.raises(InputError, match="names document 4, and the input has 4 with text"):
            neardup.audit(first, removed_ids=tmp_path)

    def test_other_files_in_a_folder_of_datatrove_are_named(self, tmp_path):
        for file in (AUDIT_DATA / "datatrove").iterdir():
            shutil.copy(file, tmp_path)
        (tmp_path / "000003.remove.gz").write_bytes(b"")
        removed, result = listed(tmp_path, clusters=tmp_path)
        assert removed == ["0-3", "2-0", "2-3"]
        [warning] = [text for text in result.report["warnings"] if "datatrove" in text]
        assert warning.startswith("Left out 1 file other than lists of datatrove: ")
        assert warning.endswith("000003.remove.gz.")

    def test_a_damaged_file_of_datatrove_is_refused(self, tmp_path):
        (tmp_path / "000000.clusters").write_bytes(struct.pack("<3I", 1, 0, 3))
        with pytest.raises(InputError, match="is cut off: got 12 bytes, and a row has 8"):
            listed(AUDIT_DATA / "datatrove", clusters=tmp_path)

    def test_a_folder_with_the_name_of_a_list_of_datatrove_is_refused(self, tmp_path):
        (tmp_path / "000000.remove").mkdir()
        with pytest.raises(InputError, match=r"remove cannot be read as a list of ids: Is "):
            listed(tmp_path)

    @pytest.mark.parametrize(
        ("name", "says"),
        [("removed.jsonl.gz", "ended before"), ("removed.txt.gz", "the rest of the file cannot")],
    )
    def test_a_compressed_list_that_is_cut_off_is_refused(self, tmp_path, name, says):
        path = tmp_path / name
        path.write_bytes(gzip.compress(b'{"id": "0-3"}\n')[:-4])
        with pytest.raises(InputError, match=f"cannot be read as a list of ids: .*{says}"):
            listed(path)

    def test_clusters_of_text_dedup_are_numbers_in_every_format(self, tmp_path):
        rows = {"__INDEX__": [0, 1, 2], "__CLUSTER__": [0, 0, 2]}
        original = pa.table({"text": ["one two", "one two", "three four"]})
        path = tmp_path / "removed.csv"
        path.write_text("__INDEX__,__CLUSTER__\n0,0\n1,0\n2,2\n")
        strings = tmp_path / "removed.parquet"
        pq.write_table(pa.table(rows | {"__CLUSTER__": ["0", "0", "2"]}), strings)
        for file in (path, strings):
            assert neardup.audit(original, removed_ids=file).removals["row"].to_pylist() == [1]

    def test_a_column_of_lists_is_no_column_of_clusters(self, tmp_path):
        path = tmp_path / "clusters.parquet"
        pq.write_table(pa.table({"id": ["0-3"], "cluster": [[1]]}), path)
        with pytest.raises(ColumnError, match="cannot be a cluster: "):
            listed(AUDIT_DATA / "datatrove", clusters=path)

    def test_annotations_that_are_no_numbers_are_refused(self, tmp_path):
        path = tmp_path / "annotated.jsonl"
        path.write_text('{"id": "0-1", "cc_idx": "first"}\n')
        with pytest.raises(ColumnError, match="contains string"):
            listed(path)

    def test_lines_of_ids(self, tmp_path):
        path = tmp_path / "removed.txt"
        path.write_text("2-3\n0-3\nunknown\n")
        removed, result = listed(path)
        assert removed == ["0-3", "2-3"]
        assert result.report["counts"]["unknown"] == 1

    def test_an_id_removes_all_documents_that_have_it(self, tmp_path):
        path = tmp_path / "removed.txt"
        path.write_text("a\n")
        original = pa.table({"id": ["a", "b", "a"], "text": ["one two", "three four", "one two"]})
        result = neardup.audit(original, removed_ids=path)
        assert result.removals["row"].to_pylist() == [0, 2]
        assert result.faults == ["no_copy_kept"]

    def test_null_ids_name_no_document(self, tmp_path):
        path = tmp_path / "removed.jsonl"
        path.write_text('{"id": "a"}\n{"id": null}\n')
        original = pa.table({"id": ["a", None], "text": ["one two", "three four"]})
        result = neardup.audit(original, removed_ids=path)
        assert result.removals["row"].to_pylist() == [0]
        assert result.report["counts"]["unknown"] == 1

    def test_ids_that_look_like_times_are_strings(self, tmp_path):
        path = tmp_path / "removed.jsonl"
        path.write_text('{"id": "2024-01-31", "when": "2024-01-31"}\n')
        original = pa.table({"id": ["2024-01-31", "b"], "text": ["one two", "three four"]})
        assert neardup.audit(original, removed_ids=path).removals["row"].to_pylist() == [0]

    def test_files_of_a_list_that_are_left_out_are_named(self, tmp_path):
        for name in ("removed.txt", "removed.lst", "_removed.txt"):
            (tmp_path / name).write_text("0-3\n")
        (tmp_path / "empty.jsonl").touch()
        removed, result = listed(tmp_path)
        assert removed == ["0-3"]
        first, second = result.report["warnings"]
        assert first == (
            f"Left out 1 file with a name that begins with ., _ or ~$: {tmp_path}/_removed.txt."
        )
        assert second == f"Left out 1 file without a known suffix: {tmp_path}/removed.lst."

    def test_a_list_that_cannot_be_read_as_a_whole_is_refused(self, tmp_path):
        (tmp_path / "removed.txt").write_bytes(b"0-3\nbad\xff\n")
        with pytest.raises(
            InputError, match=r"removed.txt cannot be read .*: row 1: .*not .*UTF-8"
        ):
            listed(tmp_path)
        (tmp_path / "removed.txt").unlink()
        (tmp_path / "gone.jsonl").symlink_to("nowhere")
        (tmp_path / "removed.jsonl").write_text('{"id": "0-3"}\n')
        with pytest.raises(InputError, match=r"gone.jsonl cannot be read .*: it is a link to"):
            listed(tmp_path)

    @pytest.mark.parametrize("suffix", ["parquet", "jsonl", "csv"])
    def test_a_table_with_a_column_of_ids(self, tmp_path, suffix):
        path = tmp_path / f"removed.{suffix}"
        ids = ["2-3", "0-3"]
        if suffix == "parquet":
            pq.write_table(pa.table({"id": ids}), path)
        elif suffix == "csv":
            path.write_text("id,score\n" + "".join(f"{one},1\n" for one in ids))
        else:
            path.write_text("".join(json.dumps({"id": one}) + "\n" for one in ids))
        assert listed(path)[0] == ["0-3", "2-3"]

    def test_the_ids_of_curator_are_row_numbers(self, tmp_path):
        # FuzzyDuplicateIds/part.N.parquet of NeMo Curator: IdentifyDuplicatesStage.
        folder = tmp_path / "FuzzyDuplicateIds"
        folder.mkdir()
        for number, rows in enumerate(([8], [3, 11])):
            table = pa.table({"_curator_dedup_id": pa.array(rows, pa.int64())})
            pq.write_table(table, folder / f"part.{number}.parquet")
        assert listed(folder)[0] == ["0-3", "2-0", "2-3"]

    def test_the_groups_of_curator_are_clusters(self, tmp_path):
        # The output of its ConnectedComponentsStage, by document.
        groups = pa.table(
            {
                "_curator_dedup_id": pa.array([1, 3, 6, 8, 0, 11], pa.int64()),
                "_duplicate_group_id": pa.array([0, 0, 1, 1, 2, 2], pa.int64()),
            }
        )
        pq.write_table(groups, tmp_path / "groups.parquet")
        result = neardup.audit(
            AUDIT_DATA / "original",
            removed_ids=AUDIT_DATA / "datatrove",
            clusters=tmp_path / "groups.parquet",
        )
        assert result.report["clusters"]["clusters"] == 3
        assert result.report["clusters"]["sound_by_own_cluster"] == 3

    def test_text_dedup_keeps_the_row_whose_number_names_its_cluster(self, tmp_path):
        # A dataset that text-dedup saved with skip_filtering, keep_index_column and
        # keep_cluster_column.
        table = pa.table({"__INDEX__": range(12), "__CLUSTER__": [0, 1, 2, 1, *range(4, 12)]})
        pq.write_table(table, tmp_path / "all.parquet")
        removed, result = listed(tmp_path / "all.parquet", clusters=tmp_path / "all.parquet")
        assert removed == ["0-3"]
        assert result.report["clusters"]["clusters"] == 1

    def test_the_annotations_of_duplodocus(self, tmp_path):
        # Its output with annotate: true: cc_idx 0 is kept.
        rows = []
        marks = {"0-1": (7, 0), "0-3": (7, 1), "2-3": (9, 1), "0-0": (9, 0)}
        for path in sorted((AUDIT_DATA / "original").iterdir()):
            for line in path.read_text().splitlines():
                row = json.loads(line)
                if row["id"] in marks:
                    cluster, rank = marks[row["id"]]
                    row["metadata"] = {"minhash": {"cc_id": cluster, "cc_size": 2, "cc_idx": rank}}
                rows.append(json.dumps(row) + "\n")
        path = tmp_path / "annotated.jsonl"
        path.write_text("".join(rows))
        removed, result = listed(path, clusters=path)
        assert removed == ["0-3", "2-3"]
        assert result.report["clusters"]["clusters"] == 2
        assert result.report["clusters"]["sound_by_own_cluster"] == 2

    def test_a_table_without_known_columns_is_refused(self, tmp_path):
        path = tmp_path / "odd.parquet"
        pq.write_table(pa.table({"name": ["0-3"]}), path)
        with pytest.raises(ColumnError, match=r"No column of ids in .*odd\.parquet: it has name"):
            listed(path)

    def test_a_list_of_other_ids_is_refused(self, tmp_path):
        path = tmp_path / "removed.txt"
        path.write_text("x\ny\n")
        with pytest.raises(InputError, match=r"None of the 2 ids of .*removed\.txt is in"):
            listed(path)

    def test_datasets_before_and_after(self, tmp_path):
        datasets = pytest.importorskip("datasets")
        rows = [
            json.loads(line)
            for path in sorted((AUDIT_DATA / "original").iterdir())
            for line in path.read_text().splitlines()
        ]
        before = datasets.Dataset.from_list(rows)
        after = before.filter(lambda row: row["id"] not in ("0-3", "2-3"))
        result = neardup.audit(before, kept=after)
        assert result.removals["id"].to_pylist() == ["0-3", "2-3"]
        assert result.sound == 1.0


class TestCommand:
    def run(self, *arguments, folder):
        command = ["audit", str(AUDIT_DATA / "original"), "-o", str(folder / "out"), *arguments]
        return CliRunner().invoke(cli, command)

    def removed(self, tmp_path, *ids):
        path = tmp_path / "removed.txt"
        path.write_text("".join(f"{one}\n" for one in ids))
        return str(path)

    def test_it_prints_the_shares_and_the_faults(self, tmp_path):
        ids = self.removed(tmp_path, "0-3", "1-0")
        result = self.run("--removed-ids", ids, folder=tmp_path)
        assert result.exit_code == 0
        lines = {" ".join(line.split()[:2]): line for line in result.stdout.splitlines()}
        assert "50.0 %, exactly" in lines["Sound 1"]
        assert "50.0 %, exactly" in lines["Lost 1"]
        assert "Like none" in lines

    @pytest.mark.parametrize(
        ("rate", "code", "message"),
        [("0.4", 3, "lost: 1 of 2 removed documents, above --fail-above 0.4."), ("0.5", 0, "")],
    )
    def test_a_gate_fails_above_its_rate(self, tmp_path, rate, code, message):
        ids = self.removed(tmp_path, "0-3", "1-0")
        result = self.run("--removed-ids", ids, "--fail-above", rate, folder=tmp_path)
        assert result.exit_code == code
        assert message in result.stderr

    @pytest.mark.parametrize(("policy", "code"), [("reject", 4), ("skip", 0)])
    def test_a_gate_passes_only_over_what_it_read(self, tmp_path, policy, code):
        kept = tmp_path / "kept.jsonl"
        lines = [
            line
            for path in sorted((AUDIT_DATA / "original").iterdir())
            for line in path.read_text().splitlines()
        ]
        kept.write_text("\n".join(lines[:-1]) + "\n{damaged\n")
        arguments = ["--kept", str(kept), "--fail-above", "1", "--on-error", policy]
        result = self.run(*arguments, folder=tmp_path)
        assert result.exit_code == code, result.output
        assert re.search("Rejected +1  could not be read\n", result.stdout)
        assert "could not be read" in (tmp_path / "out" / "report.html").read_text()
        assert "Excluded" not in result.stdout
        if code:
            assert "not all documents could be read" in result.stderr

    def test_a_gate_does_not_pass_over_nothing(self, tmp_path):
        empty = tmp_path / "empty.jsonl"
        empty.touch()
        arguments = ["audit", str(empty), "--kept", str(empty), "-o", str(tmp_path / "out")]
        result = CliRunner().invoke(cli, [*arguments, "--fail-above", "0"])
        assert result.exit_code == 4, result.output
        assert "no document was read" in result.stderr

    def test_a_gate_names_left_out_files_under_quiet(self, tmp_path):
        folder = tmp_path / "removed"
        folder.mkdir()
        for name in ("removed.txt", "removed.lst"):
            (folder / name).write_text("0-3\n")
        arguments = ["--removed-ids", str(folder), "--fail-above", "1", "--quiet"]
        result = self.run(*arguments, folder=tmp_path)
        assert result.exit_code == 0
        assert "Left out 1 file without a known suffix" in result.stderr

    def test_a_gate_does_not_pass_on_a_sample_that_does_not_show_it(self, capsys, monkeypatch):
        monkeypatch.setattr("neardup.cli.audit.tell_warnings", lambda report: None)
        lost = {"documents": 1, "share": 0.01, "low": 0.0, "high": 0.05}
        assert _gate({"lost": lost, "counts": {"judged": 100}}, 0.02) == 4
        assert "the sample does not show that at most 0.02" in capsys.readouterr().err

    def test_options_come_from_a_file_and_from_the_report_of_a_run(self, tmp_path):
        ids = self.removed(tmp_path, "0-3", "1-0")
        options = f'inputs = ["{AUDIT_DATA / "original"}"]\nremoved-ids = "{ids}"\nngram = 3\n'
        (tmp_path / "run.toml").write_text(options)
        reports = []
        for name, config in [("a", tmp_path / "run.toml"), ("b", tmp_path / "a/report.json")]:
            command = ["audit", "--config", str(config), "-o", str(tmp_path / name)]
            assert CliRunner().invoke(cli, command).exit_code == 0
            reports.append(json.loads((tmp_path / name / "report.json").read_text()))
        assert reports[0]["options"]["ngram"] == 3
        assert reports[0]["options"] == reports[1]["options"]
        assert reports[0]["lost"] == reports[1]["lost"]


def test_the_original_may_be_a_stream_that_is_read_once():
    texts = ["the quick brown fox jumps over it", "The quick brown fox jumps over it!"]
    found = neardup.audit(iter(texts), kept=iter(texts[:1]))
    assert found.removals["verdict"].to_pylist() == ["copy"]
    assert found.sound == 1.0


def test_the_share_of_no_removals_is_in_its_interval():
    report = neardup.audit(["a text of words"], kept=["a text of words"]).report
    for name in ("sound", "lost"):
        share = report[name]
        assert (share["low"], share["share"], share["high"]) == (0.0, 0.0, 0.0)


def test_tables_that_are_not_filled_are_not_in_the_result():
    found = neardup.audit(["a text of words"], kept=["a text of words"], tables=False)
    for name in ("removals", "left", "unmatched"):
        with pytest.raises(SettingError, match=f"{name} is not in the result: got tables=False"):
            getattr(found, name)
