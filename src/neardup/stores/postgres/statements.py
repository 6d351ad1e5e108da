"""The tables of an index in PostgreSQL, and the statements on them.

A document is a row of `documents`. Its keys are a row of `entries`, with a column for each table of
keys; a document with several keys in one table has several rows, with nulls where a table has no
more keys. A key has its upper bit flipped, so that bigint has the order of uint64. Strings are
bytea in UTF-8: PostgreSQL's text cannot contain a zero.

Rows that are found are returned as one bytea of binary numbers, because a result of many rows takes
longer to read. A document is returned as one record: PostgreSQL's binary format of a row, which
`packed_rows` reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pyarrow as pa

from neardup.candidates.lookups import Layout

BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
COUNTS = "SELECT num_rows, kept, removed FROM counts"
EXISTS = "SELECT to_regclass('settings')"
_LOCK = "(hashtextextended(current_schema(), 0))"  # the same number on all hosts
LOCK = f"SELECT pg_advisory_lock{_LOCK}"
UNLOCK = f"SELECT pg_advisory_unlock{_LOCK}"
# Not the number of writers: an index that exists is named at once, whoever writes it.
LOCK_NAME = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 2))"
# Tried again and again: a statement that waits has a snapshot, for whose end REINDEX CONCURRENTLY
# waits, so both would wait for ever.
TRY_LOCK_COMPACTION = "SELECT pg_try_advisory_lock(hashtextextended(current_schema(), 1))"
IMPORTS = "SELECT name, opened, num_documents FROM imports ORDER BY opened, name"
STAGED = "SELECT part, data FROM staged WHERE import_name = %s AND part > %s ORDER BY part LIMIT 1"
# Positions are n - 1, because ORDINALITY counts from 1.
IDS = (
    "SELECT string_agg(int8send(n - 1) || int8send(row), '') FROM unnest(%s::bytea[]) WITH "
    "ORDINALITY AS wanted(id, n) JOIN documents USING (id) WHERE row <> ALL(%s)"
)
# State 1 is kept and 2 is removed, so ordered by state a kept row is first.
CONTENTS = (
    "SELECT string_agg(int8send(n - 1) || int8send(row), '') FROM unnest(%s::bytea[]) WITH "
    "ORDINALITY AS wanted(content, n) CROSS JOIN LATERAL (SELECT row FROM documents WHERE member "
    "AND content = wanted.content AND row <> ALL(%s) ORDER BY state, row LIMIT 1) AS found"
)
FORGET = (
    "WITH gone AS (DELETE FROM documents WHERE row = ANY(%s) RETURNING state) SELECT count(*) "
    "FILTER (WHERE state = 1), count(*) FILTER (WHERE state = 2) FROM gone"
)
FORGET_ENTRIES = "DELETE FROM entries WHERE row = ANY(%s)"
SEE = (
    "UPDATE documents SET last_seen = to_timestamp(0) + %s * interval '1 microsecond' WHERE row = "
    "ANY(%s)"
)
# The condition changes no row if another writer has counted meanwhile.
COUNT_ON = (
    "UPDATE counts SET num_rows = num_rows + %s, kept = kept + %s, removed = removed + %s WHERE "
    "num_rows = %s"
)
OPEN_IMPORT = (
    "INSERT INTO imports VALUES (%s, %s, %s) ON CONFLICT (name) DO UPDATE SET num_documents = "
    "imports.num_documents + excluded.num_documents"
)
STAGE = (
    "INSERT INTO staged SELECT %s, coalesce(max(part), 0) + 1, %s FROM staged WHERE import_name = "
    "%s"
)
END_IMPORT = ("DELETE FROM staged WHERE import_name = %s", "DELETE FROM imports WHERE name = %s")
# Not current_schema()::regnamespace, which reads a name as SQL does: without capital letters.
_OURS = "relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())"
SIZES = (
    f"SELECT relname::text, pg_total_relation_size(oid) FROM pg_class WHERE {_OURS} AND relkind = "
    "'r' ORDER BY relname"
)
CHECKS = {
    "{} documents have a row that was never given out.": """
        SELECT count(*) FROM documents WHERE row >= (SELECT num_rows FROM counts)""",
    "The number of kept documents differs by {} from the number that was counted.": """
        SELECT abs((SELECT kept FROM counts) - count(*)) FROM documents WHERE state = 1""",
    "The number of removed documents differs by {} from the number that was counted.": """
        SELECT abs((SELECT removed FROM counts) - count(*)) FROM documents WHERE state = 2""",
    "{} documents are in no table of keys.": """
        SELECT count(*) FROM documents AS d
        WHERE member AND NOT EXISTS (SELECT FROM entries AS e WHERE e.row = d.row)""",
    # A removed document that is no member may be listed for its source.
    "{} entries of tables of keys have no document.": """
        SELECT count(*) FROM entries AS e WHERE NOT EXISTS
        (SELECT FROM documents AS d WHERE d.row = e.row AND (d.member OR d.state = 2))""",
    "{} entries of tables of keys have another state than their document.": """
        SELECT count(*) FROM entries AS e JOIN documents AS d USING (row) WHERE e.kept <> (d.state = 1)""",  # noqa: E501
    "{} staged tables belong to no import.": """
        SELECT count(*) FROM staged AS s WHERE NOT EXISTS (SELECT FROM imports AS r WHERE r.name = s.import_name)""",  # noqa: E501
    "{} indexes of the database are not valid: REINDEX makes them anew.": f"""
        SELECT count(*) FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid WHERE NOT indisvalid AND {_OURS}""",  # noqa: E501
}
"""Sentences about damage, and the queries that count it."""
_TYPES = {
    pa.bool_(): "boolean",
    pa.uint8(): "smallint",
    pa.uint16(): "integer",
    pa.uint32(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
}
# Columns that PostgreSQL should not compress: they do not get smaller.
LARGE = ("features", "tags", "text")


def create_statements(schema: pa.Schema, layout: Layout) -> list[str]:
    """Return the statements that make the tables of an index in the schema of the connection."""
    keys = [f"key_{table}" for table in range(len(layout.prefix_bits))]
    columns = ", ".join(f'"{field.name}" {_type_of(field)}' for field in schema)
    return [
        "CREATE TABLE settings (name text PRIMARY KEY, data bytea NOT NULL)",
        (
            "CREATE TABLE counts (num_rows bigint NOT NULL, kept bigint NOT NULL, removed bigint "
            "NOT NULL)"
        ),
        "INSERT INTO counts VALUES (0, 0, 0)",
        (
            "CREATE TABLE imports (name bytea PRIMARY KEY, opened bigint NOT NULL, num_documents "
            "bigint NOT NULL)"
        ),
        (
            "CREATE TABLE staged (import_name bytea, part bigint, data bytea NOT NULL, PRIMARY KEY "
            "(import_name, part))"
        ),
        # The fill factor leaves space on each page, so that a change of last_seen does not change
        # the indexes. A hash index takes ids of any length.
        (
            f"CREATE TABLE documents ({columns}, PRIMARY KEY (row), EXCLUDE USING hash (id WITH "
            "=)) WITH (fillfactor = 90)"
        ),
        "CREATE INDEX documents_content ON documents USING hash (content) WHERE member",
        *(f"ALTER TABLE documents ALTER {name} SET STORAGE EXTERNAL" for name in LARGE),
        (
            f"CREATE TABLE entries (row bigint NOT NULL, {' bigint, '.join(keys)} bigint, kept "
            "boolean NOT NULL)"
        ),
        "CREATE INDEX entries_row ON entries (row)",
        *(_index_statement(table, layout) for table in range(len(keys))),
    ]


def _index_statement(table: int, layout: Layout) -> str:
    """Return the statement that makes the index of a table of keys.

    An index of equal keys includes the rows, because the earliest rows of a common key are read in
    order. An index of prefixes does not, so PostgreSQL stores each prefix once, in a third of the
    space; rows are sorted when they are found.
    """
    key = f"key_{table}"
    if tables_of_equal_keys(layout)[table]:
        columns = f"{key}, row"
    else:
        columns = f"({prefix_of(key, layout.prefix_bits[table])})"
    return f"CREATE INDEX entries_{key} ON entries ({columns})"


@cache
def find_statement(layout: Layout) -> str:
    """Return the statement of all lookups in all tables of keys.

    The parameters for each table, in order: the numbers of the lookups, the keys, their prefixes
    (unless keys must be equal), the rows to skip, and the limit plus one.

    The result is two bytea of bigint: the number of the lookup, and 4 * row + 2 * beyond + kept,
    for up to one row more than the limit for each key. `beyond` marks this row, except if keys must
    be equal: then the caller counts.
    """
    branches = " UNION ALL ".join(
        _equal_keys(table) if equal else _near_keys(table, layout)
        for table, equal in enumerate(tables_of_equal_keys(layout))
    )
    return (
        f"SELECT string_agg(int8send(n), ''), string_agg(int8send(packed), '') FROM ({branches}) "
        "AS found"
    )


def tables_of_equal_keys(layout: Layout) -> list[bool]:
    """Return for each table of keys whether only equal keys are found in it."""
    return [prefix_bits == 64 or layout.max_distance == 0 for prefix_bits in layout.prefix_bits]


def prefix_of(key: str, prefix_bits: int) -> str:
    """Return the expression of the upper bits of a key, the others 0."""
    return f"{key} & {prefix_mask(prefix_bits)}::bigint"


def prefix_mask(prefix_bits: int) -> int:
    """Return the number, with a sign, whose upper bits are 1."""
    return -(1 << (64 - prefix_bits)) if prefix_bits else 0


def take_statement(columns: Sequence[str]) -> str:
    """Return the statement that takes columns of rows, in the order of the rows: a record for
    each.
    """
    return (
        f"SELECT record_send({_record(columns)}) FROM unnest(%s) WITH ORDINALITY AS wanted(row, n) "
        "JOIN documents AS d USING (row) ORDER BY n"
    )


def scan_statement(columns: Sequence[str]) -> str:
    """Return the statement that takes columns of the next rows after one: a record for each, and
    its row.
    """
    return (
        f"SELECT record_send({_record(columns)}), row FROM documents AS d WHERE row > %s ORDER BY "
        "row LIMIT %s"
    )


def copy_statement(columns: Sequence[str], table: str) -> str:
    """Return the statement that receives rows of a table."""
    return f"COPY {table} ({', '.join(map(_quoted, columns))}) FROM STDIN (FORMAT binary)"


def _equal_keys(table: int) -> str:
    # A value is row << 2 | is_beyond << 1 | is_kept, which `PostgresSnapshot.find` takes apart.
    return (
        "SELECT n, row * 4 + kept::int AS packed FROM unnest(%s, %s) AS wanted(n, key) CROSS JOIN "
        f"LATERAL (SELECT row, kept FROM entries WHERE key_{table} = wanted.key AND row <> ALL(%s) "
        "ORDER BY row LIMIT %s) AS listed"
    )


def _near_keys(table: int, layout: Layout) -> str:
    key = f"key_{table}"
    return (
        "SELECT n, row * 4 + CASE WHEN rank = bound THEN 2 ELSE 0 END + kept::int AS packed FROM "
        "unnest(%s, %s, %s) AS wanted(n, key, prefix) CROSS JOIN LATERAL (SELECT row, kept, "
        f"row_number() OVER (PARTITION BY {key} ORDER BY row) AS rank FROM entries WHERE "
        f"{prefix_of(key, layout.prefix_bits[table])} = wanted.prefix AND bit_count(({key} # "
        f"wanted.key)::bit(64)) <= {layout.max_distance} AND row <> ALL(%s)) AS listed CROSS JOIN "
        "(SELECT %s AS bound) AS b WHERE rank <= bound"
    )


def _record(columns: Sequence[str]) -> str:
    return f"ROW({', '.join('d.' + _quoted(name) for name in columns)})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _type_of(field: pa.Field) -> str:
    kind = "timestamptz" if pa.types.is_timestamp(field.type) else _TYPES.get(field.type, "bytea")
    return kind if field.nullable else f"{kind} NOT NULL"
