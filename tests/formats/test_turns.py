"""Texts of turns, as of a chat: the answers are those of flat texts, joined in plain Python."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.cli.main import cli
from neardup.decide.outcome import Cuts, cut_turns
from neardup.documents import texts
from neardup.documents.batch import Columns, DocumentBatch
from neardup.documents.nested import column_of, nested_types, value_of, with_column
from neardup.documents.texts import documents_of, join_turns
from neardup.documents.turns import turns_of
from neardup.errors import ColumnError, InputError, SettingError
from neardup.formats import parquet
from neardup.formats.json_paths import find_strings, turns_in
from neardup.formats.tables import TablePart
from neardup.runs.input_files import list_inputs
from neardup.runs.items import _text
from neardup.runs.run import Inputs, tasks_of
from reference.places import TESTS

FILES = TESTS / "data" / "formats"
CHATS = [json.loads(line) for line in (FILES / "chats.jsonl").read_text().splitlines()]
MESSAGES = "messages[].content"
CONVERSATIONS = "conversations[].value"


def joined(turns: list[dict[str, Any]] | None, roles: tuple[str, ...] = ()) -> str | None:
    """Return the text of turns: the rule, in plain Python."""
    if turns is None:
        return None
    chosen = [turn for turn in turns if not roles or turn.get("role") in roles]
    return "\n".join(turn["content"] for turn in chosen if turn["content"] is not None)


def flat(rows: list[dict[str, Any]], roles: tuple[str, ...] = ()) -> pa.Table:
    documents = [{"id": row["id"], "text": joined(row["messages"], roles)} for row in rows]
    return pa.Table.from_pylist(documents)


def write_parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, row_group_size=3)


def write_arrow(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)


def write_lines(table: pa.Table, path: Path) -> None:
    lines = [json.dumps(row, ensure_ascii=False) for row in table.to_pylist()]
    path.write_text("".join(line + "\n" for line in lines))


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "parquet": write_parquet,
    "arrow": write_arrow,
    "jsonl": write_lines,
}
READERS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "parquet": lambda path: pq.read_table(path).to_pylist(),
    "arrow": lambda path: pa.ipc.open_file(path).read_all().to_pylist(),
    "jsonl": read_lines,
}
TABLES: dict[str, Callable[[pa.Table], Any]] = {
    "pyarrow": lambda table: table,
    "pandas": lambda table: table.to_pandas(),
    "polars": polars.from_arrow,
}
MESSAGE = pa.struct({"role": pa.string(), "content": pa.string()})
SCHEMA = pa.schema({"id": pa.string(), "messages": pa.list_(MESSAGE)})


def source_of(rows: list[dict[str, Any]], name: str, folder: Path) -> Any:
    """Return rows as a table in memory, or as a file."""
    table = pa.Table.from_pylist(rows, SCHEMA)
    if name in TABLES:
        return TABLES[name](table)
    WRITERS[name](table, folder / f"rows.{name}")
    return folder / f"rows.{name}"


def texts_of(source: Any, text_column: Any, **options: Any) -> list[str | None]:
    """Return the texts of a source, as all commands read them."""
    tasks = tasks_of(Inputs(source, text_column=text_column, **options), "first")
    return [text for task in tasks for batch in task.read() for text in batch.text.to_pylist()]


SHAPES = {
    "chats.parquet": (MESSAGES, "user"),
    "chats.jsonl": (MESSAGES, "user"),
    "saved-chats": (MESSAGES, "user"),
    "sharegpt.parquet": (CONVERSATIONS, "human"),
    "sharegpt.jsonl": (CONVERSATIONS, "human"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_turns_of_a_chat_are_joined_by_line_ends(name):
    column, user = SHAPES[name]
    assert texts_of(FILES / name, column) == [joined(row["messages"]) for row in CHATS]
    of_user = [joined(row["messages"], ("user",)) for row in CHATS]
    assert texts_of(FILES / name, column, roles=user) == of_user
    of_both = [joined(row["messages"], ("user", "assistant")) for row in CHATS]
    both = [user, "assistant" if user == "user" else "gpt"]
    assert texts_of(FILES / name, column, roles=both) == of_both
    assert texts_of(FILES / name, column, roles=", ".join(both)) == of_both


@pytest.mark.parametrize("name", SHAPES)
def test_kept_chats_are_whole_rows(tmp_path, name):
    column, user = SHAPES[name]
    result = neardup.dedup(
        FILES / name, text_column=column, roles=user, output=tmp_path, overwrite=True
    )
    (kept,) = (path for path in (tmp_path / "kept").rglob("*") if path.is_file())
    assert result.removed["id"].to_pylist() == ["b", "c"]
    if kept.suffix == ".jsonl":
        lines = (FILES / name).read_bytes().splitlines(keepends=True)
        assert kept.read_bytes() == b"".join([lines[0], *lines[3:]])
    else:
        read = pq.read_table if kept.suffix == ".parquet" else read_stream
        before = read(
            next((FILES / name).glob("*.arrow")) if name == "saved-chats" else FILES / name
        )
        assert read(kept).equals(before.take([0, 3, 4, 5, 6]))
        assert read(kept).schema.equals(before.schema)


def read_stream(path: Path) -> pa.Table:
    return pa.ipc.open_stream(pa.memory_map(str(path))).read_all()


@pytest.mark.parametrize("name", [*TABLES, *WRITERS])
@pytest.mark.parametrize("roles", [(), ("user",), ("user", "assistant"), ("nobody",)])
def test_a_source_of_any_kind_has_the_same_documents(tmp_path, name, roles):
    options: Any = {"roles": list(roles)} if roles else {}
    source = source_of(CHATS, name, tmp_path)
    result = neardup.dedup(source, text_column=MESSAGES, threshold=0.5, **options)
    expected = neardup.dedup(flat(CHATS, roles), threshold=0.5)
    names = ["id", "kept_id", "similarity"]
    assert result.removed.select(names).equals(expected.removed.select(names))
    if name == "pyarrow":
        kept = expected.kept["id"].to_pylist()
        assert result.kept.to_pylist() == [row for row in CHATS if row["id"] in kept]


def test_a_dataset_stays_a_dataset():
    datasets = pytest.importorskip("datasets")
    # Not `from_parquet`: early versions do not know the features in the metadata of later ones.
    dataset = datasets.Dataset.from_list(pq.read_table(FILES / "chats.parquet").to_pylist())
    kept = neardup.dedup(dataset, text_column=MESSAGES, roles="user").dataset
    assert kept.features == dataset.features
    assert kept.to_list() == [CHATS[number] for number in (0, 3, 4, 5, 6)]


def test_an_earlier_collection_may_have_plain_texts():
    question = CHATS[0]["messages"][1]["content"]
    chats = pa.Table.from_pylist(CHATS[:4], SCHEMA)
    options = {"text_column": MESSAGES, "roles": "user", "id_column": "id"}
    result = neardup.dedup(chats, against=pa.table({"text": [question], "id": ["z"]}), **options)
    assert result.removed["kept_id"].to_pylist() == ["z", "z", "z"]
    again = neardup.dedup(chats, against=pa.Table.from_pylist(CHATS[:1], SCHEMA), **options)
    assert again.kept["id"].to_pylist() == ["d"]


# Any shape of rows, and any layout in memory.

ROLES = st.sampled_from(["user", "assistant", None])
TURN = st.fixed_dictionaries(
    {"role": ROLES, "content": st.none() | st.text("ab\n\u00e9\U0001f642", max_size=5)}
)
ROWS = st.lists(st.none() | st.lists(st.none() | TURN, max_size=4), max_size=6)
KINDS = {
    "plain": pa.list_(MESSAGE),
    "large": pa.large_list(
        pa.struct({"role": pa.dictionary(pa.int8(), pa.string()), "content": pa.large_string()})
    ),
    "dictionary": pa.list_(
        pa.struct({"role": pa.string(), "content": pa.dictionary(pa.int32(), pa.string())})
    ),
    "bytes": pa.list_(pa.struct({"role": pa.string(), "content": pa.binary()})),
}


LAYOUTS = {
    **KINDS,
    "fixed": pa.list_(MESSAGE, 2),
    "struct of lists": pa.struct({"content": pa.list_(pa.string()), "n": pa.int8()}),
}
CONTENTS = {
    "fixed": [None, [{"role": "user", "content": "a"}, None], None, [None, {"content": "b"}]],
    "struct of lists": [None, {"content": ["a", None], "n": 1}, {"content": None}, {"n": 2}],
}


@pytest.mark.parametrize("kind", LAYOUTS)
def test_other_texts_keep_the_layout(kind):
    rows = CONTENTS.get(kind, [None, [{"role": "user", "content": "a"}, None], [], None])
    array = pa.array(rows, LAYOUTS[kind] if kind in CONTENTS else pa.list_(MESSAGE))
    batch = pa.record_batch({"messages": array.cast(LAYOUTS[kind]), "n": [1, 2, 3, 4]}).slice(1)
    name = "messages.content[]" if kind == "struct of lists" else MESSAGES
    turns = turns_of(batch, name)
    assert turns is not None
    same = with_column(batch, name, turns.values)
    assert same.schema.equals(batch.schema)
    assert same.equals(batch)
    same.validate(full=True)
    upper = pa.array(["A", None], pa.string()).cast(turns.values.type)
    changed = with_column(batch, name, pa.concat_arrays([upper, turns.values[2:]]))
    assert column_of(changed, name)[0].as_py() in (["A", None], [b"A", None])


def documents_in(lists: list[Any]) -> list[dict[str, Any]]:
    """Return rows in which a turn that is null has a role and a content that are null."""
    nothing = {"role": None, "content": None}
    rows = [turns and [turn or nothing for turn in turns] for turns in lists]
    return [{"id": str(number), "messages": turns} for number, turns in enumerate(rows)]


@pytest.mark.parametrize("kind", KINDS)
@given(lists=ROWS, roles=st.sampled_from([(), ("user",), ("user", "assistant")]))
def test_any_lists_are_joined_as_in_plain_python(kind, lists, roles):
    array = pa.array([None, *lists, []], pa.list_(MESSAGE)).cast(KINDS[kind])
    batch = pa.record_batch({"messages": array}).slice(1, len(lists))
    columns = Columns(MESSAGES, roles=roles)
    found = documents_of(batch, np.arange(len(lists)), columns, "", pytest.fail)
    expected = [joined(row["messages"], roles) for row in documents_in(lists)]
    assert found.text.to_pylist() == expected
    assert [_text(value_of({"messages": turns}, MESSAGES, roles)) for turns in lists] == [
        text or "" for text in expected
    ]


def test_lists_in_lists_are_one_list_in_a_line_as_in_a_table() -> None:
    name = "messages[].content[].text"
    messages = [
        {"role": "user", "content": [{"text": "a"}, {"text": None}]},
        {"role": "assistant", "content": [{"text": "b"}]},
        {"role": "user", "content": None},
        {"role": "user", "content": [None, {"text": "c"}]},
    ]
    column = column_of(pa.record_batch({"messages": [messages]}), name)
    assert column is not None
    assert column.to_pylist() == [["a", None, "b", None, "c"]]
    assert value_of({"messages": messages}, name) == ["a", None, "b", None, "c"]
    assert value_of({"messages": messages}, name, ("user",)) == ["a", None, None, "c"]


@given(lists=ROWS, roles=st.sampled_from([(), ("user",)]))
def test_any_lines_are_joined_as_in_plain_python(tmp_path_factory, lists, roles):
    # The first line tells the keys that the lines have.
    rows = documents_in([[{"role": "user", "content": "a"}], *lists])
    path = tmp_path_factory.mktemp("lines") / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = {"roles": list(roles)} if roles else {}
    assert texts_of(path, MESSAGES, **options) == [joined(row["messages"], roles) for row in rows]


PARTS = [
    [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image", "text": None}]}],
    [
        {"role": "user", "content": [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]},
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": [{"type": "text", "text": "d"}]},
    ],
    None,
    [{"role": "system", "content": []}],
]


@pytest.mark.parametrize("name", ["pyarrow", *WRITERS])
def test_contents_of_several_parts_are_joined_too(tmp_path, name):
    table = pa.table({"messages": PARTS})
    source: Any = table
    if name in WRITERS:
        source = tmp_path / f"rows.{name}"
        WRITERS[name](table, source)
    column = "messages[].content[].text"
    assert texts_of(source, column) == ["a", "b\nc\nd", None, ""]
    assert texts_of(source, column, roles="assistant") == ["", "d", None, ""]


@pytest.mark.parametrize("name", ["pyarrow", *WRITERS])
@pytest.mark.parametrize("column", ["text", "text[]", None])
def test_a_text_may_be_a_list_of_strings(tmp_path, name, column):
    table = pa.table({"text": [["a", "b"], None, [], [None, "c"]], "n": [1, 2, 3, 4]})
    source: Any = table
    if name in WRITERS:
        source = tmp_path / f"rows.{name}"
        WRITERS[name](table, source)
    assert texts_of(source, column) == ["a\nb", None, "", "c"]


def test_turns_and_a_title_are_joined(tmp_path):
    rows = [{"title": "t", "messages": [{"role": "user", "content": "a"}]}]
    assert texts_of(pa.Table.from_pylist(rows), ["title", MESSAGES]) == ["t\na"]


# Lines that Arrow does not read, and names.

LINES = [json.dumps({"messages": row["messages"]}) for row in CHATS] * 20
REFUSED = {
    '{"messages": "no"}': "'messages' is a string, not a list",
    '{"messages": ["no"]}': "element 0 of 'messages': it is a string, not an object",
    '{"messages": [{"content": "a"}, {"content": 3}]}': (
        "element 1 of 'messages': 'content' is a number, not a string"
    ),
    '{"messages": [{"content": [{"text": "a"}]}]}': (
        "element 0 of 'messages': 'content' is a list, not a string; name the text of its parts, "
        "as in content[].text"
    ),
    '{"messages": [{"content": "\\ud800"}]}': (
        "'messages[].content' contains a lone surrogate (\\ud800 to \\udfff without its partner), "
        "which is not text"
    ),
}


@pytest.mark.parametrize("line", REFUSED)
def test_a_line_of_another_shape_is_rejected_with_its_place(tmp_path, line):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([*LINES, line]))
    result = neardup.dedup(
        path, text_column=MESSAGES, output=tmp_path / "out", max_unreadable=1, on_error="skip"
    )
    assert result.report["counts"]["read"] == len(LINES)
    (rejected,) = read_lines(tmp_path / "out/rejected.jsonl")
    assert (rejected["line"], rejected["reason"]) == (len(LINES) + 1, REFUSED[line])


def test_an_element_of_another_kind_is_named_before_lists_inside_it():
    with pytest.raises(TypeError, match=r"element 0 of 'messages': it is a string, not an object"):
        turns_in({"messages": ["no"]}, ("messages", None, "content", None, "text"))


@pytest.mark.parametrize(
    "bad", ["a text", 7, ["a text"], [7]], ids=["string", "number", "strings", "numbers"]
)
def test_one_line_without_a_list_hides_no_turns(tmp_path, bad):
    chats = [bad, [{"role": "user", "content": "a b c"}], [{"role": "user", "content": "d e f"}]]
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps({"messages": chat}) + "\n" for chat in chats))
    kept = neardup.dedup(file, text_column="messages[].content", max_unreadable=1)
    assert kept.report["counts"]["read"] == 2
    assert kept.report["counts"]["rejected"] == 1


def test_a_role_that_is_no_string_is_no_chosen_role(tmp_path):
    line = '{"messages": [{"role": 1, "content": "a"}, {"role": "user", "content": "b"}]}'
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([*LINES, line]))
    assert texts_of(path, MESSAGES, roles="user")[-1] == "b"


@pytest.mark.parametrize(
    ("line", "name", "expected"),
    [
        ('{"m": [{"c": "a"}, {"d": "x", "c": "b"}]}', "m[].c", {(0,): "a", (1,): "b"}),
        ('{"m": [], "n": {"m": [{"c": "x"}]}, "c": "y"}', "m[].c", {}),
        ('{"m": [{"c": [{"t": "a"}, {}, {"t": "b"}]}]}', "m[].c[].t", {(0, 0): "a", (0, 2): "b"}),
        ('{"m": ["a", null, {"c": "x"}, ["y"], "b"]}', "m[]", {(0,): "a", (4,): "b"}),
        ('{"m": [{"c": "x"}], "m": [{"c": "a"}]}', "m[].c", {(0,): "a"}),
        ('{"m": [{"c": "x", "c": "a"}]}', "m[].c", {(0,): "a"}),
        ('{"c": ["x"], "m": {"c": "y"}, "c": "a"}', "c", {(): "a"}),
        ('{"a": {"b": "x"}, "a.b": "a"}', "a.b", {(): "a"}),
    ],
)
def test_strings_of_a_line_are_found_by_their_place(line, name, expected):
    found = find_strings(line, name)
    assert {place: json.loads(line[begin:end]) for place, (begin, end) in found.items()} == expected


def test_a_column_with_brackets_in_its_name_comes_first():
    batch = pa.record_batch({"m[].c": ["flat"], "m": [[{"c": "inside"}]]})
    assert column_of(batch, "m[].c").to_pylist() == ["flat"]
    types = nested_types(dict(zip(batch.schema.names, batch.schema.types, strict=True)))
    assert types["m[].c"] == pa.string()


def test_numbers_in_a_list_have_no_name():
    assert list(nested_types({"v": pa.list_(pa.float32()), "t": pa.list_(pa.string())})) == [
        "v",
        "t",
        "t[]",
    ]


REFUSALS = {
    "no turns": (
        {"text_column": "id", "roles": "user"},
        ColumnError,
        r"roles needs a text of turns that have a field role or from: got 'id' of table. Name "
        r"another by text_column: 'messages\[\]\.content'",
    ),
    "the list": (
        {"text_column": "messages"},
        ColumnError,
        r"'messages' in table holds list<.*, which cannot be text. Columns of strings: 'id', "
        r"'messages\[\]\.role', 'messages\[\]\.content'",
    ),
    "no name": (
        {"text_column": MESSAGES, "roles": " ,"},
        SettingError,
        "roles must name a role: got ' ,'",
    ),
    "no string": (
        {"text_column": MESSAGES, "roles": 3},
        SettingError,
        "roles must be a string or a list of strings or None: got 3",
    ),
    "an id": (
        {"text_column": MESSAGES, "id_column": "messages[].role"},
        ColumnError,
        r"'messages\[\]\.role' in table holds large_list<.*, which cannot be the id",
    ),
    "a missing field": (
        {"text_column": "messages[].contents"},
        ColumnError,
        r"No column 'messages\[\]\.contents' in table: .*Did you mean 'messages\[\]\.content'",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_turns_is_refused(name):
    options, error, message = REFUSALS[name]
    with pytest.raises(error, match=message):
        neardup.dedup(TablePart(pa.Table.from_pylist(CHATS, SCHEMA)), **options)


def test_roles_of_plain_text_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("a\nb\n")
    with pytest.raises(ColumnError, match=r"a\.txt, which is plain text"):
        neardup.dedup(tmp_path / "a.txt", roles="user")


# Parquet: what is read of a file, and what a small file may ask for.


def test_other_fields_of_turns_are_not_read():
    (file,) = list_inputs([str(FILES / "chats.parquet")])
    for columns, expected in (
        (Columns(MESSAGES), ["content"]),
        (Columns(MESSAGES, roles=("user",)), ["role", "content"]),
    ):
        wanted = [*columns.names, *parquet._roles_of(columns)]
        (batch,) = parquet._record_batches(file, wanted, MESSAGES)
        (kind,) = batch.schema.types
        assert [field.name for field in kind.value_type] == expected


def test_turns_that_repeat_a_dictionary_are_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "MAX_JOINED_BYTES", 1000)
    rows = [{"title": "t", "messages": [{"role": "user", "content": 30 * "a"}] * 100}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    for columns in (MESSAGES, ["title", MESSAGES]):
        with pytest.raises(InputError, match=r"'messages\[\]\.content' have 3,000 bytes together"):
            neardup.dedup(tmp_path / "rows.parquet", text_column=columns)


def test_a_long_chat_is_rejected_as_a_long_document():
    result = neardup.dedup(
        pa.Table.from_pylist(CHATS), text_column=MESSAGES, max_document_bytes=100
    )
    sizes = [len((joined(row["messages"]) or "").encode()) for row in CHATS]
    assert result.report["counts"]["read"] == sum(size <= 100 for size in sizes) < len(CHATS)


# Passages are cut inside turns.


def cut_in_python(turns: list[str | None], cuts: list[tuple[int, int]]) -> list[str | None]:
    """Return turns after cuts of their joined text, byte by byte."""
    stays = []
    for number, turn in enumerate(turns):
        stays += [] if turn is None else [number] * len(turn) + [-1]
    for start, end in cuts:
        stays[start:end] = [-1] * (end - start)
    rest: list[list[str]] = [[] for _ in turns]
    text = "".join(f"{turn}\n" for turn in turns if turn is not None)
    for letter, number in zip(text, stays, strict=True):
        if number >= 0:
            rest[number].append(letter)
    return [None if turn is None else "".join(rest[number]) for number, turn in enumerate(turns)]


@given(st.data())
def test_any_cuts_of_texts_are_cuts_of_their_turns(data):
    lists = data.draw(st.lists(st.lists(st.none() | st.text("abc", max_size=6)), min_size=1))
    cuts: list[list[tuple[int, int]]] = []
    for turns in lists:
        size = len("\n".join(turn for turn in turns if turn is not None))
        ends = data.draw(st.lists(st.integers(0, size), unique=True, max_size=6).map(sorted))
        cuts.append(list(zip(ends[::2], ends[1::2], strict=False)))
    rows = [(row, *cut) for row, found in enumerate(cuts) for cut in found]
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    batch = pa.record_batch({"text": pa.array(lists, pa.list_(pa.string()))})
    turns = turns_of(batch, "text[]")
    assert turns is not None
    cut = cut_turns(turns, Cuts(columns[0].astype(np.uint32), columns[1], columns[2]))
    expected = [cut_in_python(*row) for row in zip(lists, cuts, strict=True)]
    assert cut.values.to_pylist() == [text for row in expected for text in row]
    # Joined and put back without a cut, the turns are the same.
    changed = with_column(batch, "text[]", turns.values)
    assert changed.equals(batch)
    assert join_turns(turns)[0].to_pylist() == [
        "\n".join(turn for turn in row if turn is not None) for row in lists
    ]


random_words = random.Random(7)
PASSAGE = " ".join(random_words.choice("abcdefgh") * 3 + str(n) for n in range(40))
REPEATED = [
    {
        "id": "a",
        "messages": [
            {"role": "user", "content": f"One first question. {PASSAGE} And its end: caf\u00e9."},
            {"role": "assistant", "content": "One first answer."},
        ],
    },
    {
        "id": "b",
        "messages": [
            {"role": "system", "content": PASSAGE},
            {"role": "user", "content": None},
            {"role": "user", "content": f"Another question.\n{PASSAGE}\u00e9"},
            {"role": "assistant", "content": f"\u597d {PASSAGE} An answer."},
        ],
    },
    {"id": "c", "messages": None},
    {"id": "d", "messages": []},
]


@pytest.mark.parametrize("name", ["pyarrow", *WRITERS])
@pytest.mark.parametrize("roles", [None, "user"])
def test_a_passage_is_cut_inside_its_turns(tmp_path, name, roles):
    source = source_of(REPEATED, name, tmp_path)
    output = tmp_path / "out"
    neardup.remove_passages(
        source, text_column=MESSAGES, roles=roles, min_length=100, output=output
    )
    (kept,) = (path for path in (output / "kept").iterdir() if path.is_file())
    found = READERS[kept.suffix[1:]](kept)
    assert [row["id"] for row in found] == ["a", "b", "c", "d"]
    assert [found[number] for number in (0, 2, 3)] == [REPEATED[number] for number in (0, 2, 3)]
    before = REPEATED[1]["messages"]
    after = found[1]["messages"]
    assert [turn["role"] for turn in after] == [turn["role"] for turn in before]
    assert after[1]["content"] is None
    contents = [turn["content"] for turn in after]
    if roles is None:
        assert contents[0] == ""
        assert len(contents[3]) < 30
    else:
        assert contents[0] == before[0]["content"]
        assert contents[3] == before[3]["content"]
    assert contents[2].startswith("Another question.\n")
    assert len(contents[2]) < 30


def test_a_cut_changes_no_other_byte_of_a_line(tmp_path):
    row = json.dumps(REPEATED[1], ensure_ascii=True)
    spaced = row.replace('"id": "b"', '"id" : "b",  "score":1.50, "\\u0061": "\\u00e9"')
    lines = [json.dumps(REPEATED[0]), spaced]
    (tmp_path / "rows.jsonl").write_text("".join(line + "\n" for line in lines))
    neardup.remove_passages(
        tmp_path / "rows.jsonl", text_column=MESSAGES, min_length=100, output=tmp_path / "out"
    )
    _, kept = (tmp_path / "out/kept/rows.jsonl").read_text().splitlines()
    assert kept.startswith(spaced[: spaced.index('"messages"')])
    assert '{"role": "system", "content": ""}, {"role": "user", "content": null}' in kept
    assert kept.isascii()


def test_a_passage_may_be_marked_inside_its_turns(tmp_path):
    source = source_of(REPEATED, "jsonl", tmp_path)
    neardup.remove_passages(
        source, text_column=MESSAGES, min_length=100, output=tmp_path / "out", write="marked"
    )
    _, row, *_ = READERS["jsonl"](tmp_path / "out/kept/rows.jsonl")
    first, _, *others = [turn["content"] for turn in row["messages"]]
    assert first == f"\u27e6{PASSAGE}\u27e7"
    before = [turn["content"] for turn in REPEATED[1]["messages"][2:]]
    assert [text.replace("\u27e6", "").replace("\u27e7", "") for text in others] == before
    assert all(text.count("\u27e6") == text.count("\u27e7") == 1 for text in others)


def test_no_rows_have_no_columns_of_fields(tmp_path):
    write_parquet(pa.Table.from_pylist([], SCHEMA), tmp_path / "rows.parquet")
    kept = neardup.dedup(tmp_path / "rows.parquet", text_column=MESSAGES).kept
    assert kept.schema.names == ["id", "messages"]


def test_a_batch_without_turns_has_none():
    batch = DocumentBatch(pa.array(["a"], pa.large_string()), np.zeros(1, np.int64))
    assert turns_of(pa.record_batch({"text": ["a"]}), "text") is None
    (file,) = list_inputs([str(FILES / "chats.jsonl")])
    assert file.turns_of(batch, Columns("text"), np.zeros(1, np.int64)) is None


# Every command.

USER = {"text_column": MESSAGES, "roles": "user"}
COMMANDS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "find_pairs": lambda source, options: neardup.find_pairs(source, **options).pairs.to_pylist(),
    "cluster": lambda source, options: neardup.cluster(source, **options).clusters.to_pylist(),
    "sign": lambda source, options: neardup.sign(source, **options).values.tolist(),
    "document_frequencies": lambda source, options: neardup.document_frequencies(
        source, **options
    ).hashes.tolist(),
    "sweep": lambda source, options: neardup.sweep(source, **options).counts.to_pylist(),
    "dedup by blocks": lambda source, options: neardup.dedup(
        source, method="simhash", **options
    ).removed.to_pylist(),
    "evaluate": lambda source, options: neardup.evaluate(
        source, label="id", threshold=0.5, **options
    ).report["counts"],
    "query": lambda source, options: _query(source, options),
    "audit": lambda source, options: neardup.audit(source, kept=source, **options).report["counts"],
}


def _query(source: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    with neardup.Index.create("memory:") as index:
        index.add_many(source, id_column="id", **options)
        return index.query_many(source, **options).select(["query", "id", "similarity"]).to_pylist()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_reads_turns(command):
    run = COMMANDS[command]
    assert run(pa.Table.from_pylist(CHATS, SCHEMA), USER) == run(flat(CHATS, ("user",)), {})


def test_items_and_a_corpus_may_be_chats():
    chats = pa.Table.from_pylist(CHATS, SCHEMA)
    question = CHATS[0]["messages"][1]["content"]
    corpus = [f"before it {question} after it", "something else of some words"]

    def hits(items: Any, corpus: Any, **options: Any) -> list[tuple[str, str]]:
        found = neardup.find_contamination(items, corpus, **options).hits
        return list(
            zip(*(found[name].to_pylist() for name in ("item_id", "document_id")), strict=True)
        )

    of_items = {"item_columns": MESSAGES, "item_id_column": "id"}
    asked = [("a", "0"), ("b", "0"), ("c", "0")]
    assert hits(chats, corpus, **of_items, roles="user") == asked
    assert hits(flat(CHATS, ("user",)), corpus, item_columns="text", item_id_column="id") == asked
    items = pa.table({"question": [question], "id": ["q"]})
    options = {"item_id_column": "id", "text_column": MESSAGES, "id_column": "id"}
    assert hits(items, chats, **options) == [("q", "a"), ("q", "b"), ("q", "c")]
    assert hits(items, chats, **options, roles="assistant") == []


def test_an_index_answers_lines_of_chats():
    lines = [json.dumps(row).encode() for row in CHATS[:3]]
    bad = b'{"messages": [{"role": "user", "content": 3}]}'
    with neardup.Index.create("memory:") as index:
        answers = [
            answer
            for group in index.answer_lines([[*lines, bad]], text_column=MESSAGES, roles="user")
            for _, answer in group
        ]
    assert [answer.get("kept") for answer in answers] == [True, False, False, None]
    assert answers[3]["error"] == "an element of 'messages[].content' is a number, not a string"
    with neardup.Index.create("memory:") as index:
        ((_, answer),) = next(index.answer_lines([[b'{"text": ["a b c d", "e f g"]}']]))
        assert answer["kept"]
        assert [hit.similarity for hit in index.query("a b c d\ne f g")] == [1.0]


def test_an_index_of_a_run_reads_the_same_roles(tmp_path):
    source = source_of(CHATS, "jsonl", tmp_path)
    neardup.dedup(source, **USER, output=tmp_path / "out")
    with neardup.Index.from_run(tmp_path / "index", tmp_path / "out") as index:
        hits = index.query(CHATS[0]["messages"][1]["content"])
    assert [(hit.id, hit.similarity) for hit in hits] == [("a", 1.0)]


def test_roles_are_an_option_of_the_command_line(tmp_path):
    source = source_of(CHATS, "parquet", tmp_path)
    arguments = ["dedup", str(source), "-o", str(tmp_path / "out"), "--json"]
    options = ["--text-column", MESSAGES, "--roles", "user,assistant"]
    outcome = CliRunner().invoke(cli, [*arguments, *options])
    assert outcome.exit_code == 0, outcome.output
    report = json.loads(outcome.stdout)
    assert report["options"]["roles"] == "user,assistant"
    assert report["columns"]["text"] == MESSAGES
