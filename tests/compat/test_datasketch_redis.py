"""MinHashLSH on Redis: an index of neardup and one of datasketch under one name are the same
index.
"""

from __future__ import annotations

import pickle
from contextlib import suppress

import datasketch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.compat.datasketch import MinHash, MinHashLSH, MinHashLSHEnsemble
from neardup.compat.datasketch.pickled_keys import read_key, write_key
from neardup.errors import InputError, SettingError

TEXTS = [
    "the quick brown fox",
    "the quick brown dog",
    "something else entirely",
    "the quick brown fox jumps",
]
SETTINGS = {"threshold": 0.4, "num_perm": 64}


def minhash_of(text: str, kind: type = MinHash):
    minhash = kind(num_perm=64)
    minhash.update_batch([word.encode() for word in text.split()])
    return minhash


@pytest.fixture
def config(redis_server, request):
    """Return the configuration of an index of its own; the host comes from the environment, as
    datasketch allows.
    """
    return {
        "type": "redis",
        "basename": request.node.name.encode(),
        "redis": {
            "host": {"env": "NO_SUCH_HOST", "default": "127.0.0.1"},
            "port": redis_server.port,
        },
    }


@pytest.mark.parametrize("prepickle", [None, True, False])
def test_each_finds_what_the_other_inserted(config, prepickle):
    ours = MinHashLSH(**SETTINGS, storage_config=config, prepickle=prepickle)
    theirs = datasketch.MinHashLSH(**SETTINGS, storage_config=config, prepickle=prepickle)
    keys = [text.encode() if prepickle is False else text for text in TEXTS]
    for place, (key, text) in enumerate(zip(keys, TEXTS, strict=True)):
        if place % 2:
            ours.insert(key, minhash_of(text))
        else:
            theirs.insert(key, minhash_of(text, datasketch.MinHash))
    for text in TEXTS:
        found = ours.query(minhash_of(text))
        assert set(found) == set(theirs.query(minhash_of(text, datasketch.MinHash)))
        assert keys[TEXTS.index(text)] in found
    assert ours.get_counts() == theirs.get_counts()
    assert ours.get_subset_counts(*keys[:2]) == theirs.get_subset_counts(*keys[:2])
    ours.remove(keys[0])
    theirs.remove(keys[1])
    assert (
        [key in ours for key in keys]
        == [key in theirs for key in keys]
        == [False, False, True, True]
    )


def test_the_layout_is_that_of_datasketch_byte_for_byte(config, redis_server):
    import redis

    client = redis.Redis(port=redis_server.port)
    contents = []
    for kind, minhash in ((MinHashLSH, MinHash), (datasketch.MinHashLSH, datasketch.MinHash)):
        index = kind(**SETTINGS, storage_config=config)
        with index.insertion_session(buffer_size=3) as session:
            for number, text in enumerate(TEXTS):
                session.insert(number, minhash_of(text, minhash))
        kept = {}
        for key in client.keys(config["basename"] + b"*"):
            kinds = {
                b"hash": client.hgetall,
                b"set": client.smembers,
                b"list": lambda key: client.lrange(key, 0, -1),
            }
            kept[key] = kinds[client.type(key)](key)
        contents.append(kept)
        client.delete(*kept)
    client.close()
    assert contents[0] == contents[1] != {}


def test_what_is_removed_leaves_nothing_on_the_server(config, redis_server):
    import redis

    index = MinHashLSH(**SETTINGS, storage_config=config)
    for text in TEXTS:
        index.insert(text, minhash_of(text))
    with index.deletion_session() as session:
        for text in TEXTS:
            session.remove(text)
    assert index.is_empty()
    with redis.Redis(port=redis_server.port) as client:
        assert client.keys(config["basename"] + b"*") == []


def test_an_index_without_a_name_is_one_of_its_own(config):
    del config["basename"]
    one, other = (MinHashLSH(**SETTINGS, storage_config=config) for _ in range(2))
    one.insert("a", minhash_of(TEXTS[0]))
    assert other.query(minhash_of(TEXTS[0])) == []
    other.merge(one)
    assert other.query(minhash_of(TEXTS[0])) == ["a"]
    again = pickle.loads(pickle.dumps(other))
    assert again.query(minhash_of(TEXTS[0])) == ["a"]
    with pytest.raises(InputError, match="'a'"):
        again.insert("a", minhash_of(TEXTS[1]))
    with pytest.raises(InputError, match="overlapping"):
        other.merge(one, check_overlap=True)
    other.remove("a")
    one.remove("a")


def test_an_ensemble_answers_as_in_memory(config):
    entries = [(text, minhash_of(text), len(text.split())) for text in TEXTS]
    answers = []
    for storage in (None, config):
        index = MinHashLSHEnsemble(
            threshold=0.6, num_perm=64, num_part=2, m=4, storage_config=storage
        )
        index.index(entries)
        answers.append([sorted(index.query(minhash, size)) for _, minhash, size in entries])
    assert answers[0] == answers[1]


def test_keys_of_other_types_are_refused(config):
    index = MinHashLSH(**SETTINGS, storage_config=config)
    with pytest.raises(InputError, match=r"a str, bytes or an int .* got \('a', 1\), a tuple"):
        index.insert(("a", 1), minhash_of(TEXTS[0]))
    with pytest.raises(
        InputError, match="prepickle=False requires bytes keys on a server: got 'a', a str"
    ):
        MinHashLSH(**SETTINGS, storage_config=config, prepickle=False).insert(
            "a", minhash_of(TEXTS[0])
        )
    theirs = datasketch.MinHashLSH(**SETTINGS, storage_config=config)
    theirs.insert(("a", 1), minhash_of(TEXTS[0], datasketch.MinHash))
    with pytest.raises(InputError, match="not a pickled str, bytes or int"):
        index.query(minhash_of(TEXTS[0]))
    theirs.remove(("a", 1))


def test_a_configuration_without_a_server_is_refused():
    with pytest.raises(SettingError, match=r"storage_config lacks the server: it has \['type'\]"):
        MinHashLSH(storage_config={"type": "redis"})


@pytest.mark.slow
@given(
    st.one_of(
        st.text(), st.binary(), st.integers(-(2**300), 2**300), st.text(min_size=250, max_size=260)
    )
)
def test_keys_are_written_and_read_as_pickle_does(key):
    assert write_key(key) == pickle.dumps(key)
    for protocol in range(2 + isinstance(key, bytes), pickle.HIGHEST_PROTOCOL + 1):
        assert read_key(pickle.dumps(key, protocol)) == key


@pytest.mark.parametrize("key", [-(2**1023), 2**1023 - 1])
def test_an_integer_of_128_bytes_is_a_key(key):
    assert write_key(key) == pickle.dumps(key)
    for longer in (key - 1 if key < 0 else key + 1, key * 2**8):
        with pytest.raises(InputError, match="an int of at most 128 bytes"):
            write_key(longer)


@pytest.mark.parametrize("index", [MinHashLSH, MinHashLSHEnsemble])
def test_a_base_name_that_is_not_bytes_is_refused_before_a_server_is_called(index):
    config = {"type": "redis", "basename": "pages", "redis": {"host": "no.such.host"}}
    with pytest.raises(InputError, match="basename must be bytes: got str 'pages'"):
        index(storage_config=config)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80",
        b"abc",
        pickle.dumps(print),
        pickle.dumps([1]),
        pickle.dumps(("a",)),
        pickle.dumps("abc")[:-1],
        pickle.dumps("abc") + b".",
        pickle.dumps("abc", 0),
        pickle.dumps(1.5),
        b"\x80\x04\x8c\xffab.",
        b"\x80\x04J\x01.",
    ],
)
def test_bytes_that_are_no_key_are_refused(data):
    with pytest.raises(
        InputError, match="A key on Redis is not a pickled str, bytes or int: got b"
    ):
        read_key(data)


@given(st.sampled_from([b"", b"\x80\x04", b"\x80\x04\x8c", b"\x80\x04J"]), st.binary(max_size=40))
def test_any_bytes_are_a_key_or_refused(start, data):
    with suppress(InputError):
        assert type(read_key(start + data)) in (str, bytes, int)
