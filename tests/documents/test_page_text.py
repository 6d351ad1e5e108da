"""The text of a page is what it shows; its main content is that without navigation and the like."""

from __future__ import annotations

import builtins

import pyarrow as pa
import pytest

from neardup.documents.page_text import texts_of_pages
from neardup.errors import MissingExtraError

ARTICLE = (
    "The river rose by two metres in the night, and the bridge in the old town was closed to all "
    "traffic. The mayor said that the water is expected to fall again by the end of the week."
)
NEWS = f"""<!doctype html><html><head><title>Flood in town - The Daily</title><style>p {{ color: red }}</style></head>
<body><nav><ul><li><a href="/">The Daily</a><li><a href="/sport">Sport</a></ul></nav>
<article><h1>Flood in town</h1><p>{ARTICLE}</p><p>{ARTICLE}</p></article>
<aside class="ads">Buy now</aside><footer>Imprint, contact</footer>
<script>var p = "<p>tracking</p>"</script></body></html>"""  # noqa: E501


def text_of(page: str | bytes, *, main: bool = False) -> str:
    return texts_of_pages(pa.array([page]), main=main).to_pylist()[0]


def test_the_main_content_is_the_article_without_navigation_and_footer():
    assert text_of(NEWS, main=True) == f"Flood in town\n\n{ARTICLE}\n\n{ARTICLE}"


def test_all_text_is_what_the_page_shows_a_block_a_line():
    assert text_of(NEWS).splitlines() == [
        "The Daily",
        "Sport",
        "Flood in town",
        ARTICLE,
        ARTICLE,
        "Buy now",
        "Imprint, contact",
    ]


@pytest.mark.parametrize("main", [False, True])
def test_a_chinese_page_keeps_its_words_together(main):
    sentence = "昨夜河水上涨两米，老城区的大桥已经全面封闭，预计本周末水位才会回落。" * 4
    marked = sentence.replace("大桥", "<b>大</b>桥")
    article = f"<article><h1>洪水</h1><p>{marked}</p></article>"
    page = f"<nav><a href=/>首页</a> <a href=/t>体育</a></nav>{article}<footer>版权</footer>"
    above, below = ([], []) if main else (["首页", "体育"], ["版权"])
    assert text_of(page, main=main).split() == [*above, "洪水", sentence, *below]


@pytest.mark.parametrize("main", [False, True])
@pytest.mark.parametrize(
    "hidden",
    [
        "<script>secret()</script>",
        "<script type=module src=x>secret",
        "<style>secret{}</style>",
        "<noscript>secret <p>Turn on JavaScript</p></noscript>",
        "<template><p>secret</p><template>secret</template>secret</template>",
        "<!-- secret --><!doctype secret><?secret?></ secret>",
        "<textarea>secret</textarea><select><option>secret</select><input value=secret>",
        "<iframe>secret</iframe><svg><title>secret</title><text>secret</text></svg>",
        "<img alt=secret title=secret><a href=secret></a>",
        "<video>secret</video><title>secret</title>",
        "<p secret",
        "</secret",
    ],
)
def test_what_a_page_does_not_show_is_no_text(hidden, main):
    text = text_of(f"<h1>Flood</h1><p>{ARTICLE}</p>{hidden}", main=main)
    assert "secret" not in text
    assert text.split() == ["Flood", *ARTICLE.split()]


@pytest.mark.parametrize("main", [False, True])
def test_text_behind_a_hidden_element_is_shown(main):
    page = f"<svg/><noscript>a</noscript><template>b</template><select>c</select><script>d</script><p>{ARTICLE}</p>"  # noqa: E501
    assert text_of(page, main=main) == ARTICLE


@pytest.mark.parametrize("main", [False, True])
@pytest.mark.parametrize("mode", ["open", "closed"])
def test_a_declared_shadow_root_is_shown(mode, main):
    root = f"<template shadowrootmode={mode}><style>p {{}}</style><p>{ARTICLE}</p></template>"
    page = f"<article><h1>Flood</h1><x-news>{root}</x-news><template>secret</template></article>"
    assert text_of(page, main=main).split() == ["Flood", *ARTICLE.split()]


def test_a_title_is_not_shown():
    assert text_of("<title>Flood</title>") == text_of("<title>Flood</title>", main=True) == ""


@pytest.mark.parametrize("main", [False, True])
@pytest.mark.parametrize(
    "page", ["", "<html></html>", "<html><head><title>t</title></head></html>", " \n", "<!-- a -->"]
)
def test_a_page_without_body_has_no_text(page, main):
    assert text_of(page, main=main) == ""


@pytest.mark.parametrize("main", [False, True])
def test_null_stays_null(main):
    texts = texts_of_pages(pa.array([None, f"<p>{ARTICLE}", None], pa.string()), main=main)
    assert texts.type == pa.large_string()
    assert texts.to_pylist() == [None, ARTICLE, None]
    assert texts_of_pages(pa.array([], pa.string()), main=main).to_pylist() == []


@pytest.mark.parametrize("main", [False, True])
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("&amp; &lt;p&gt; &quot;", '& <p> "'),
        ("&eacute;&#233;&#xE9;&#XE9", "éééé"),
        ("&#27827;&#x6c34;", "河水"),
        ("&xyz; & &; &#; &#x; a&b", "&xyz; & &; &#; &#x; a&b"),
        ("1 < 2 and 2 <3 <", "1 < 2 and 2 <3 <"),
        ("&#0; &#xD800; &#1114112;", "\ufffd \ufffd \ufffd"),
        ("&#" + "9" * 5000 + "; &#x" + "f" * 5000, "\ufffd \ufffd"),
        ("a\0b", "ab"),
    ],
)
def test_character_references_are_characters(written, meant, main):
    assert text_of(f"<p>{ARTICLE} {written}", main=main) == f"{ARTICLE} {meant}"


def test_words_are_apart_where_the_page_shows_them_apart():
    assert text_of("a<b>b</b>c<i></i>d <u> e</u>\n\tf") == "abcd e f"
    assert text_of("a<p>b<div>c</div>d<br>e<li>f<hr>g<h1>h</h1>i") == "a\nb\nc\nd\ne\nf\ng\nh\ni"
    assert (
        text_of("<table><tr><td>a<td>b<tr><th>c</table>d<button>e</button>f<img>g")
        == "a b\nc\nd e f g"
    )
    assert text_of("a<x-y>b</x-y><wbr>c<script>d</script>e<!-- f -->g") == "abceg"


def test_raw_text_that_is_shown_has_no_tags_in_it():
    assert text_of("<xmp><b>a</b><!-- b --></xmp>c") == "<b>a</b><!-- b -->\nc"
    assert text_of("a<plaintext><p>b</plaintext>") == "a\n<p>b</plaintext>"


@pytest.mark.parametrize("main", [False, True])
def test_bytes_that_are_no_text_become_replacement_characters(main):
    assert text_of(b"<p>caf\xe9 " + ARTICLE.encode(), main=main) == f"caf\ufffd {ARTICLE}"


def test_a_page_without_main_content_has_all_its_text():
    page = "<nav><a href=/>Sport</a> <a href=/a>Art</a></nav><footer>Imprint</footer>"
    assert text_of(page, main=True) == text_of(page) == "Sport Art\nImprint"


def test_a_line_of_main_content_in_a_page_full_of_text_is_not_believed():
    links = "".join(f"<li><a href=/{i}>Read more about story {i}</a>" for i in range(40))
    page = f"<nav><ul>{links}</ul></nav><p>Reader Interactions</p>"
    assert text_of(page, main=True) == text_of(page)


def test_what_stands_between_tags_left_out_makes_no_new_tag():
    assert text_of(f"<p>{ARTICLE} <<b>script>x<</b>/p>", main=True) == f"{ARTICLE} <script>x</p>"


def test_an_element_with_long_attributes_is_read_without_them():
    nav = f"<nav {'data-x=' + 'y' * 5000}><a href=/>Sport</a></nav>"
    assert text_of(f"{nav}<article><p>{ARTICLE}</p></article>", main=True) == ARTICLE


def test_a_missing_package_is_named_with_how_to_install_it(monkeypatch):
    load = builtins.__import__

    def refuse(name, *rest):
        if name.startswith("resiliparse"):
            raise ImportError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r'resiliparse.*pip install "neardup\[web\]"'):
        text_of(NEWS, main=True)
    assert ARTICLE in text_of(NEWS)
