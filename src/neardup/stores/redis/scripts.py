"""The scripts that run on the server, in Lua: each saves a round trip for every document.

A script gets the prefix of the index as its first key. The keys after the prefix::

    settings     hash    settings by name
    state        hash    rows, forgotten, dropping, dropped, kept, removed, entries, id
    states       string  uint8, the state of each row; 0 if it was dropped
    forgotten    string  uint32, forgotten rows that are not dropped yet, in their order
    buckets      string  uint32, big-endian, the number of buckets of each table
    tT:L:N       string  the entries of bucket N of level L of table T
    dN           list    packed documents of DOCUMENTS_PER_LIST rows
    sN           string  int64, `last_seen` of TIMES_PER_STRING rows
    fR, gR, xR   string  features, tags and text of row R
    imports      hash    [opened, number of documents] by name
    import:NAME  list    staged tables
    writer       string  the token of the writer that has the lock
    writer-left  list    wakes the next writer

The buckets of a table grow one at a time (linear hashing): of B buckets, 2^L <= B < 2^(L + 1), the
first B - 2^L buckets of level L were each split in two of level L + 1. A bucket of level L lists
the entries whose keys have the same L upper bits, which are its number. For example, B = 5::

    upper bits of keys  000  001  01   10   11
    level:number        3:0  3:1  2:1  2:2  2:3

A script that reads buckets reads B in the same atomic step, so no bucket is split in between.
"""

from __future__ import annotations

DOCUMENTS_PER_LIST = 64
TIMES_PER_STRING = 1024

STATE = """
local p, rows, forgotten = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local state = redis.call('HMGET', p .. 'state', 'rows', 'forgotten', 'dropping', 'dropped', 'kept', 'removed')
if not state[1] then return false end
local dropped = tonumber(state[4])
if forgotten < dropped then rows = 0; forgotten = dropped end
state[7] = redis.call('GET', p .. 'buckets')
state[10], state[11] = unpack(redis.call('HMGET', p .. 'state', 'entries', 'id'))
state[8] = redis.call('GETRANGE', p .. 'states', rows, -1)
state[9] = redis.call('GETRANGE', p .. 'forgotten', 4 * (forgotten - dropped), -1)
return state
"""  # noqa: E501
"""ARGV: the rows and the forgotten rows that are known. Returns the state of the index, the number
of buckets of each table, what is not known, the states of rows and the numbers of forgotten rows
(all of both, if rows were dropped that are not known), the number of entries of each table, and the
random id that the index got when it was created.
"""

_NAME_OF_BUCKET = """
local names, deeper, widths, split, packed = {}, {}, {}, {}, redis.call('GET', p .. 'buckets')
for t = 0, #packed / 4 - 1 do
  local count, level = struct.unpack('>I', packed, 4 * t + 1), 0
  while 2 ^ (level + 1) <= count do level = level + 1 end
  names[t], deeper[t] = p .. 't' .. t .. ':' .. level .. ':', p .. 't' .. t .. ':' .. (level + 1) .. ':'
  widths[t], split[t] = 2 ^ (32 - level), count - 2 ^ level
end
local function name_of(t, top)
  local number = math.floor(top / widths[t])
  if number < split[t] then return deeper[t] .. math.floor(2 * top / widths[t]) end
  return names[t] .. number
end
"""  # noqa: E501

FETCH = f"""
local p, lookups, from, size = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
{_NAME_OF_BUCKET}
local sizes, parts = {{}}, {{}}
for at = 1, #lookups, 6 do
  local t, top = struct.unpack('>HI', lookups, at)
  local part = redis.call('GETRANGE', name_of(t, top), from, from + size - 1)
  sizes[#sizes + 1] = struct.pack('<I', #part)
  parts[#parts + 1] = part
end
return {{redis.call('HGET', p .. 'state', 'dropping'), table.concat(sizes), table.concat(parts)}}
"""
"""ARGV: of each lookup the table, uint16, and the upper 32 bits of the key; the first byte of
buckets that is wanted, and how many. Returns the number of dropped rows, the sizes, and the bytes.
"""


def _each_row(rows_per_key: int, body: str) -> str:
    """Return a script that runs `body` for each `row` of ARGV[1], uint32.

    The row has the index `rest` in the key `number`.
    """
    return f"""
local p, rows, parts = KEYS[1], ARGV[1], {{}}
for at = 1, #rows, 4 do
  local row = struct.unpack('<I', rows, at)
  local rest = row % {rows_per_key}
  local number = (row - rest) / {rows_per_key}
  {body}
end
return table.concat(parts)
"""


DOCUMENTS = _each_row(
    DOCUMENTS_PER_LIST,
    """
  local part = redis.call('LINDEX', p .. 'd' .. number, rest)
  if not part or part == '' then return row end
  parts[#parts + 1] = part""",
)
"""ARGV: rows, uint32. Returns their packed documents, or a row that has none."""

TIMES = _each_row(
    TIMES_PER_STRING,
    "parts[#parts + 1] = redis.call('GETRANGE', p .. 's' .. number, 8 * rest, 8 * rest + 7)",
)
"""ARGV: rows, uint32. Returns when they were last seen, int64 each."""

# Keys are big-endian at the begin of an entry, so bit number `level` of a key, from the highest,
# decides about the half.
SPLIT = """
local p, t, first, last = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
for count = first, last - 1 do
  local level = 0
  while 2 ^ (level + 1) <= count do level = level + 1 end
  local number = count - 2 ^ level
  local old = p .. 't' .. t .. ':' .. level .. ':' .. number
  local entries = redis.call('GET', old)
  if entries then
    local byte, bit_of_byte = math.floor(level / 8), 2 ^ (7 - level % 8)
    local lower, upper = {}, {}
    for at = 1, #entries, 12 do
      local half = lower
      if bit.band(string.byte(entries, at + byte), bit_of_byte) ~= 0 then half = upper end
      half[#half + 1] = string.sub(entries, at, at + 11)
    end
    local name = p .. 't' .. t .. ':' .. (level + 1) .. ':'
    if #lower > 0 then redis.call('SET', name .. 2 * number, table.concat(lower)) end
    if #upper > 0 then redis.call('SET', name .. (2 * number + 1), table.concat(upper)) end
    redis.call('DEL', old)
  end
end
"""
"""ARGV: a table, how many buckets it has, and how many it gets."""

# A head has 2 + 1 + 4 + 4 = 11 bytes.
ENTER = """
local p, packed, at = KEYS[1], ARGV[1], 1
while at <= #packed do
  local t, level, number, size = struct.unpack('>HBII', packed, at)
  redis.call('APPEND', p .. 't' .. t .. ':' .. level .. ':' .. number, string.sub(packed, at + 11, at + 10 + size))
  at = at + 11 + size
end
"""  # noqa: E501
"""ARGV: of each bucket the table, uint16, the level, uint8, the number, uint32, the size of the new
entries, uint32, and these.
"""

SEE = _each_row(TIMES_PER_STRING, "redis.call('SETRANGE', p .. 's' .. number, 8 * rest, ARGV[2])")
"""ARGV: rows, uint32, and when they were last seen, int64."""

DROP = _each_row(
    DOCUMENTS_PER_LIST,
    """
  redis.call('LSET', p .. 'd' .. number, rest, '')
  redis.call('DEL', p .. 'f' .. row, p .. 'g' .. row, p .. 'x' .. row)
  redis.call('SETRANGE', p .. 'states', row, '\\0')""",
)
"""ARGV: rows, uint32, whose documents are no longer needed."""

CREATE = """
local p = KEYS[1]
if redis.call('EXISTS', p .. 'settings') == 1 then return 0 end
redis.call('HSET', p .. 'state', 'rows', 0, 'forgotten', 0, 'dropping', 0, 'dropped', 0, 'kept', 0, 'removed', 0)
redis.call('SET', p .. 'buckets', ARGV[1])
redis.call('HSET', p .. 'state', 'entries', ARGV[2], 'id', ARGV[3])
redis.call('SADD', KEYS[2], ARGV[4])
for i = 5, #ARGV, 2 do redis.call('HSET', p .. 'settings', ARGV[i], ARGV[i + 1]) end
return 1
"""  # noqa: E501
"""KEYS[2]: the set of names. ARGV: the numbers of buckets and of entries of each table, a random
id, the name, and settings by name.
"""

RELEASE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('DEL', KEYS[2])
redis.call('LPUSH', KEYS[2], 1)
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
"""
"""KEYS: the lock and the list that the next writer waits for. ARGV: the token, and milliseconds."""

RENEW = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
"""
"""KEYS: the lock. ARGV: the token, and milliseconds."""
