"""Chinese words: what jieba gives, through every setting, and how they reach the shingles."""

from __future__ import annotations

import gzip
import json
import logging
import sys
import time
import warnings
from collections import Counter

import pyarrow as pa
import pytest

import neardup
from neardup.errors import InputError, MissingExtraError, SettingError
from neardup.features.normalise import normalise
from neardup.features.segmenters import MAX_PIECE, cutter_of, describe_segmenter, segmenter_of
from neardup.features.shingles import shingle_documents
from neardup.features.spans import token_spans
from neardup.features.word_files import read_user_dict
from neardup.settings.methods import Jieba, MinHash, Shingling
from reference.places import TESTS

pytest.importorskip("rjieba")

UNIVERSITY = "我来到北京清华大学"
XIAOMING = "小明硕士毕业于中国科学院计算所，后在日本京都大学深造"


def records(name):
    """Return the records of a small set that is in the repository."""
    return [
        json.loads(line)
        for line in gzip.decompress((TESTS / "data" / f"{name}.jsonl.gz").read_bytes()).splitlines()
    ]


def words(text, **settings):
    return "/".join(segmenter_of(Jieba(**settings))(normalise(text, Shingling())))


# Golden: the examples of jieba's README and of its test/test_userdict.py, version 0.42.1,
# punctuation left out.
@pytest.mark.parametrize(
    ("text", "settings", "expected"),
    [
        (UNIVERSITY, {}, "我/来到/北京/清华大学"),
        (UNIVERSITY, {"mode": "full"}, "我/来到/北京/清华/清华大学/华大/大学"),
        ("他来到了网易杭研大厦", {}, "他/来到/了/网易/杭研/大厦"),
        ("他来到了网易杭研大厦", {"hmm": False}, "他/来到/了/网易/杭/研/大厦"),
        (
            XIAOMING,
            {"mode": "search"},
            "小明/硕士/毕业/于/中国/科学/学院/科学院/中国科学院/计算/计算所/后/在/日本/京都/大学/日本京都大学/深造",
        ),
        (
            "李小福是创新办主任也是云计算方面的专家",
            {},
            "李小福/是/创新/办/主任/也/是/云/计算/方面/的/专家",
        ),
        (
            "李小福是创新办主任也是云计算方面的专家",
            {"words": ("创新办", "云计算")},
            "李小福/是/创新办/主任/也/是/云计算/方面/的/专家",
        ),
        ("mac上可分出「石墨烯」", {}, "mac/上/可/分出/石墨/烯"),
        ("mac上可分出「石墨烯」", {"words": ("石墨烯",)}, "mac/上/可/分出/石墨烯"),
        ("結構之法算法之道", {}, "結構/之法/算法/之道"),
    ],
)
def test_words_are_those_of_jieba(text, settings, expected):
    assert words(text, **settings) == expected


def test_a_word_has_a_letter_or_a_digit_or_an_underscore():
    assert words("——你好！ \r\n（C++）3.14％…🙂 _ é") == "你好/c++/3.14%/_/é"


def test_format_characters_are_passed_over_as_everywhere():
    assert words("清\u200d华\ufeff大学") == "清华大学"


def test_words_take_the_normalisation_of_the_text():
    shingling = Shingling(tokens=Jieba(words=("ＡＡ制度",)))
    assert cutter_of(shingling)(normalise("实行AA制度", shingling)) == ["实行", "aa制度"]


def test_full_mode_lists_characters_that_no_dictionary_knows():
    assert words("䶵䶵我来到abc ab", mode="full") == "䶵/䶵/我/来到/abc/ab"
    assert words("a\nbc\r\nd1", mode="full") == "a/bc/d1"


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_a_user_dictionary_has_words_with_frequency_and_tag_if_you_like(tmp_path, start, ending):
    file = tmp_path / "words.txt"
    lines = [
        "云计算 5",
        "李小福 2 nr",
        "",
        "创新办 3 i",
        "easy_install 3 eng",
        "韩玉赏鉴\tnz",
        "台中",
        "  ",
    ]
    file.write_bytes(start + ending.join(lines).encode())
    text = "李小福是创新办主任也是云计算方面的专家；「台中」正確；韩玉赏鉴"
    expected = "李小福/是/创新办/主任/也/是/云计算/方面/的/专家/台中/正確/韩玉赏鉴"
    assert words(text, user_dict=str(file)) == expected
    assert (
        words(text, user_dict=str(file), parts_of_speech=("nr", "nz", "i"))
        == "李小福/创新办/韩玉赏鉴"
    )


def test_a_user_dictionary_changes_the_part_of_speech_of_a_known_word(tmp_path):
    file = tmp_path / "words.txt"
    file.write_text("北京 70000 mine", encoding="utf-8")
    assert words(UNIVERSITY, parts_of_speech=("mine",)) == ""
    assert words(UNIVERSITY, parts_of_speech=("mine",), user_dict=str(file)) == "北京"


def test_a_changed_file_is_read_again(tmp_path):
    file = tmp_path / "words.txt"
    file.write_text("石墨", encoding="utf-8")
    settings = Jieba(user_dict=str(file))
    before = describe_segmenter(settings)
    assert segmenter_of(settings)("石墨烯") == ["石墨", "烯"]
    assert segmenter_of(settings) is segmenter_of(settings)
    file.write_text("石墨烯", encoding="utf-8")
    assert segmenter_of(settings)("石墨烯") == ["石墨烯"]
    assert describe_segmenter(settings) != before


@pytest.mark.parametrize(
    "line",
    [
        "云计算 5 n 3",
        "云计算 n 5",
        "云计算 0",
        "云计算 -1",
        "云计算 5.5",
        "云计算 99999999999",
        "云计算 0099999999999",
        "云计算 001" + 5000 * "9",
        "云计算 5 名词",
    ],
)
def test_a_line_that_does_not_parse_is_named_with_file_and_number(tmp_path, line):
    file = tmp_path / "words.txt"
    file.write_text(f"石墨烯\n\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        segmenter_of(Jieba(user_dict=str(file)))
    message = str(caught.value)
    shown = line[:100]
    assert message.startswith(f"Line 3 of the user dictionary {file} is not valid: got {shown!r}.")
    assert "'云计算 5 n'. Correct the line, or remove it." in message


def test_a_frequency_may_begin_with_zeros(tmp_path):
    file = tmp_path / "words.txt"
    file.write_text(f"云计算 {'0' * 5000}5\n", encoding="utf-8")
    [entry] = read_user_dict(str(file), None)
    assert entry.frequency == 5


def test_words_are_a_list_or_a_tuple():
    assert Jieba(words=["石墨烯"], parts_of_speech=["n"]) == Jieba(
        words=("石墨烯",), parts_of_speech=("n",)
    )
    with pytest.raises(SettingError, match=r"a list of strings: got '石墨烯'.*Change words"):
        Jieba(words="石墨烯")


@pytest.mark.parametrize("parameter", ["user_dict", "stop_words"])
def test_files_that_cannot_be_read_are_named(tmp_path, parameter):
    file = tmp_path / "words.txt"
    with pytest.raises(InputError, match=rf"Cannot read {parameter} .*words\.txt'.*Check the path"):
        segmenter_of(Jieba(**{parameter: str(file)}))
    with pytest.raises(InputError, match=f"Cannot read {parameter}"):
        describe_segmenter(Jieba(**{parameter: str(tmp_path)}))
    file.write_bytes("石墨烯\n".encode() + "北京".encode("gb18030"))
    with pytest.raises(
        InputError, match=rf"Line 2 of {parameter} .* is not UTF-8: got the byte 0xb1.*iconv"
    ):
        segmenter_of(Jieba(**{parameter: str(file)}))


def test_stop_words_are_left_out_after_the_same_normalisation(tmp_path):
    file = tmp_path / "stop.txt"
    file.write_text("\ufeff我\n\n ＭＡＣ \n。\n", encoding="utf-8")
    assert words("我的Mac。", stop_words=str(file)) == "的"
    with_tags = {"stop_words": str(file), "parts_of_speech": ("eng", "r", "n")}
    assert words("我的Mac，北京", **with_tags) == "北京"


def test_parts_of_speech_are_kept_by_their_first_letters():
    assert (
        words(XIAOMING, parts_of_speech=("n",)) == "小明/硕士/毕业/中国科学院/计算所/日本京都大学"
    )
    assert words(XIAOMING, parts_of_speech=("nr", "v")) == "小明/深造"
    assert words("你好", parts_of_speech=("zzz",)) == ""


def test_traditional_text_folded_to_simplified_gives_the_same_words():
    simplified = "我来到北京清华大学学习计算机网络"
    traditional = "我來到北京清華大學學習計算機網絡"
    plain = Shingling(tokens="jieba")
    folding = Shingling(tokens="jieba", fold="chinese")
    assert cutter_of(plain)(normalise(traditional, plain)) != cutter_of(plain)(
        normalise(simplified, plain)
    )
    expected = ["我", "来到", "北京", "清华大学", "学习", "计算机网络"]
    for text in (simplified, traditional):
        assert cutter_of(folding)(normalise(text, folding)) == expected


def test_added_words_and_stop_words_may_be_traditional_where_texts_are_folded(tmp_path):
    file = tmp_path / "stop.txt"
    file.write_text("這個", encoding="utf-8")
    settings = Jieba(words=("雲計算",), stop_words=str(file))
    method = Shingling(tokens=settings, fold="chinese")
    assert cutter_of(method)(normalise("這個雲計算", method)) == ["云计算"]


@pytest.fixture(scope="module")
def jieba():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its regular expressions, and of pkg_resources
        module = pytest.importorskip("jieba")
        pytest.importorskip("jieba.posseg")
    module.setLogLevel(logging.CRITICAL)
    return module


def share_in_common(found, expected):
    return 2 * (Counter(found) & Counter(expected)).total() / (len(found) + len(expected))


@pytest.mark.parametrize("mode", ["exact", "full", "search"])
@pytest.mark.parametrize("hmm", [True, False])
def test_the_words_of_laws_are_those_of_jieba(jieba, mode, hmm):
    cut = segmenter_of(Jieba(mode=mode, hmm=hmm))
    for record in records("zh_laws")[:20]:
        text = normalise(record["text"], Shingling())[:5000]
        if mode == "search":
            theirs = jieba.lcut_for_search(text, HMM=hmm)
        else:
            theirs = jieba.lcut(text, cut_all=mode == "full", HMM=hmm)
        assert cut(text) == [word for word in theirs if any(c.isalnum() or c == "_" for c in word)]


def test_suggested_frequencies_are_those_of_jieba(jieba):
    added = ["创新办", "云计算", "石墨烯", "八一双鹿", "台中", "中国科学院计算所后"]
    theirs = jieba.Tokenizer()
    for word in added:
        theirs.add_word(word)
    text = "李小福是创新办主任也是云计算方面的专家什么是八一双鹿石墨烯台中正确小明毕业于中国科学院计算所后在日本"  # noqa: E501
    assert segmenter_of(Jieba(words=tuple(added)))(text) == theirs.lcut(text)


@pytest.mark.parametrize("ask", [segmenter_of, describe_segmenter])
def test_a_missing_package_is_answered_with_the_command_that_installs_it(monkeypatch, ask):
    monkeypatch.setitem(sys.modules, "rjieba", None)
    with pytest.raises(
        MissingExtraError,
        match=r'rjieba, which is not installed. .*pip install "neardup\[zh\]"',
    ):
        ask(Jieba())


def test_a_segmenter_describes_all_that_decides_its_words(tmp_path):
    file = tmp_path / "words.txt"
    file.write_bytes(b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    described = describe_segmenter(
        Jieba(mode="search", hmm=False, user_dict=str(file), words=("石墨烯",))
    )
    assert described.pop("version")[0].isdigit()
    assert described == {
        "package": "rjieba",
        "mode": "search",
        "hmm": False,
        "user_dict_sha256": empty,
        "words": ["石墨烯"],
        "stop_words_sha256": None,
        "parts_of_speech": [],
    }


@pytest.mark.timing
@pytest.mark.parametrize(
    "text",
    [
        "中" * 400_000,
        "䶵" * 400_000,
        "1." * 400_000,
        "a" * 400_000,
        "\u200d" * 400_000,
        "清华大学的" * 200_000,
    ],
    ids=[
        "one character",
        "an unknown one",
        "numbers",
        "letters",
        "format characters",
        "3 MB without punctuation",
    ],
)
@pytest.mark.parametrize(
    "settings", [{}, {"mode": "full"}, {"mode": "search"}, {"parts_of_speech": ("n",)}], ids=str
)
def test_time_is_bounded_whatever_the_text(text, settings):
    cut = segmenter_of(Jieba(**settings))
    cut(text[:1000])

    def seconds(part):
        start = time.perf_counter()
        cut(part)
        return time.perf_counter() - start

    tenth = min(seconds(text[: len(text) // 10]) for _ in range(3))
    # Quadratic work would take 100 times as long; 40 leaves room for a busy machine.
    assert seconds(text) < 40 * max(tenth, 0.01)


@pytest.mark.parametrize(
    "settings",
    [
        Jieba(),
        Jieba(mode="full"),
        Jieba(mode="search"),
        Jieba(parts_of_speech=("n", "v")),
    ],
)
def test_a_long_text_is_cut_where_no_word_is(settings):
    sentence = "我来到北京清华大学，"
    text = sentence * (3 * MAX_PIECE // len(sentence))
    cut = segmenter_of(settings)
    assert cut(text) == cut(sentence) * (3 * MAX_PIECE // len(sentence))


# Shingles, spans and runs.
def test_shingles_are_those_of_the_words_given_as_a_callable():
    texts = pa.array([UNIVERSITY, "", None, "！？", XIAOMING.upper(), "hello 世界 Straße"])
    cut = segmenter_of(Jieba())
    found = shingle_documents(texts, MinHash(tokens="jieba", ngram=2))
    expected = shingle_documents(texts, MinHash(tokens=lambda text: cut(text), ngram=2))
    for left, right in zip(found, expected, strict=True):
        assert left.tolist() == right.tolist()
    assert found.offsets.tolist()[1:4] == [3, 3, 3]


@pytest.mark.parametrize(
    "settings", [{}, {"mode": "full"}, {"mode": "search"}, {"parts_of_speech": ("n", "v")}], ids=str
)
def test_spans_are_the_tokens_with_their_places(settings):
    method = Shingling(tokens=Jieba(**settings), fold="chinese")
    for text in ["", "！", XIAOMING, "①ＡＢ：我來\u200d到…北京\n清華大学，𠀀\ud800x", *_samples()]:
        spans = token_spans(text, method)
        assert [span.token for span in spans] == cutter_of(method)(normalise(text, method))
        for key in ("start", "end"):
            places = [getattr(span, key) for span in spans]
            assert places == sorted(places)
        assert all(span.start < span.end for span in spans)


def _samples():
    return [record["text"][:2000] for record in records("zh_ts")[:10]]


def test_spans_show_what_a_word_was_made_from():
    text = "在①《清\u200d華 大學》"
    spans = token_spans(text, Shingling(tokens="jieba", fold="chinese"))
    assert [(text[span.start : span.end], span.token) for span in spans] == [
        ("在", "在"),
        ("①", "1"),
        ("清\u200d華", "清华"),
        ("大學", "大学"),
    ]


def test_words_that_overlap_share_one_place():
    spans = token_spans("在清华大学，", Shingling(tokens=Jieba(mode="search")))
    assert spans == [(0, 1, "在"), *((1, 5, word) for word in ("清华", "华大", "大学", "清华大学"))]


@pytest.mark.parametrize("tokens", ["jieba", Jieba(mode="search", words=("计算所",))], ids=str)
def test_dedup_by_chinese_words_runs_from_end_to_end(tokens):
    texts = [XIAOMING, UNIVERSITY, f"{XIAOMING}。", "他来到了网易杭研大厦"]
    result = neardup.dedup(texts, method=neardup.MinHash(tokens=tokens, ngram=2))
    assert result.removed["id"].to_pylist() == ["2"]


@pytest.mark.parametrize("word", ["云 计算", " 云", "云\n", "\u3000"])
def test_a_word_to_add_has_no_white_space(word):
    with pytest.raises(neardup.SettingError, match="words are whole, without white space"):
        Jieba(words=(word,))
