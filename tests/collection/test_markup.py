"""Does all text stay and all markup disappear, whatever the markup looks like?"""

from __future__ import annotations

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.parsing.markup import (
    IGNORED,
    INLINE,
    _read,
    _Text,
    heading_starts,
    page_text,
    plain_text,
)

PIECES = st.sampled_from(
    "< > </ <p> <b> </b> <title> </title> <script> </script> <br/> <!-- --> <!DOCTYPE <? ?> & "
    "&amp; &# &#x0; &#xd800; &notin; <a href=' \" = a b".split()
)


@given(st.text())
def test_text_without_markup_keeps_its_words(text: str) -> None:
    """Escaped text has the same words afterwards."""
    title, body = plain_text(html.escape(text))
    assert title == ""
    assert body.split() == text.split()


@given(st.lists(PIECES | st.text(max_size=3)).map("".join))
def test_any_markup_has_a_text(markup: str) -> None:
    """However broken the markup, there are no runs of blank lines or spaces, and one title line."""
    title, body = plain_text(markup)
    assert "\n" not in title
    assert all(
        line and line == " ".join(line.split())
        for line in body.replace("\n\n", "\n").split("\n")
        if body
    )


@pytest.mark.parametrize("markup", ["<![foo[x]]>", "a <![ b", "<p><![1]>"])
def test_marked_sections_do_not_crash(markup: str) -> None:
    """Office programs write such sections; the parser of Python 3.11 fails on them."""
    plain_text(markup)


@pytest.mark.parametrize("tag", ["p", "div", "li", "tr", "h1", "custom-tag"])
def test_blocks_are_on_separate_lines(tag: str) -> None:
    """Words of two blocks are never joined."""
    assert plain_text(f"<{tag}>one</{tag}><{tag}>two</{tag}>")[1] == "one\n\ntwo"
    assert plain_text("one<br>two<br/>three<hr />four")[1] == "one\ntwo\nthree\n\nfour"
    row = "<tr><td>one</td><td>1</td></tr>"
    assert plain_text(f"<table>{row}{row}</table>")[1] == "one 1\n\none 1"


@pytest.mark.parametrize("tag", [*sorted(INLINE - IGNORED - {"svg"}), "st1:City", "o:p"])
def test_inline_tags_leave_words_whole(tag: str) -> None:
    """A word that is half in bold stays one word."""
    assert plain_text(f"birch<{tag}>bark</{tag}>s and <{tag}>x</{tag}>")[1] == "birchbarks and x"


def test_formulas_and_pictures_stay_in_their_sentence() -> None:
    """Numbers one above the other are not one number; the source of a formula is left out."""
    half = "<mfrac><mn>1</mn><mn>2</mn></mfrac>"
    source = '<annotation encoding="application/x-tex">\\frac{1}{2}</annotation>'
    markup = f"Add <math><semantics>{half}{source}</semantics></math> spoon <img/> of bark"
    assert plain_text(f"<p>{markup}.</p>")[1] == "Add 1 2 spoon of bark."


def test_annotations_are_sources_of_formulas_alone() -> None:
    """Elsewhere they are text, and one that is not closed ends with its formula."""
    assert plain_text("<annotation>Ann</annotation><p>a</p><annotation-xml>b")[1] == "Ann\n\na\n\nb"
    assert plain_text("<p>If <math>x<annotation>\\x</math> is 1</p><p>y")[1] == "If x is 1\n\ny"


@pytest.mark.parametrize("tag", ["script", "style", "template", "noscript"])
def test_invisible_elements_are_left_out(tag: str) -> None:
    """Scripts, styles and templates, with tags in any case."""
    assert plain_text(f"a<{tag}>var x = '<p>';</{tag}>b<{tag.upper()}>c</{tag.upper()}>d") == (
        "",
        "abd",
    )


@pytest.mark.parametrize(
    "tag",
    ["<link rel='x'/>", "<link>", "<meta itemprop='a' content='b'>", "<style>.a{}</style>",
     "<script>t()</script>", "<template><p>x</p>y</template>", "<noscript><br>x</noscript>"],
)  # fmt: skip
def test_invisible_elements_tear_no_sentence(tag: str) -> None:
    """Nor a heading, as on pages of Wikipedia, nor does what is in them."""
    markup = f"<h2>Life of the {tag}heron</h2><p>It weighs {tag}<span>two</span> kilograms.</p>"
    text = "Life of the heron\n\nIt weighs two kilograms."
    assert page_text(markup) == ("", text, [0])
    assert plain_text(markup) == ("", text)


def test_the_title_is_no_part_of_the_text() -> None:
    """It is one line with its entities resolved."""
    markup = "<html><head><title>Birch\n  &amp; bark</title></head><body>text</body></html>"
    assert plain_text(markup) == ("Birch & bark", "text")


def test_titles_of_svg_elements_are_not_the_title() -> None:
    """An icon in the page has a <title>, too, which comes first or alone."""
    icon = "<svg><g><title>Icon</title></g></svg>text"
    assert plain_text(f"<title>Page</title>{icon}")[0] == "Page"
    assert plain_text(f"{icon}<title>Page</title>")[0] == "Page"
    assert plain_text(icon) == ("", "Icon text")


@pytest.mark.parametrize("tag", ["path", "clipPath", "linearGradient", "symbol", "text"])
def test_drawings_stay_in_their_sentence(tag: str) -> None:
    """Their titles and labels are words of their own."""
    icon = f"<svg><{tag}><title>Save</title></{tag}><g><{tag}/></g><text>icon</text></svg>"
    assert plain_text(f"<p>Press{icon}to s<svg/>ave.</p>a")[1] == "Press Save icon to save.\n\na"


def test_cells_of_workbooks_in_xml_are_apart() -> None:
    """Prefixes other than those of Office's web pages are not inline."""
    cells = "<ss:Cell><ss:Data>Alpha</ss:Data></ss:Cell><ss:Cell><ss:Data>Beta</ss:Data></ss:Cell>"
    assert plain_text(f"<ss:Row>{cells}</ss:Row>")[1] == "Alpha\n\nBeta"


def test_entities_comments_and_attributes() -> None:
    """Entities are resolved once; comments and attributes are left out."""
    markup = "<!-- no --><a href='no' title=\"no\">caf&eacute;</a> &lt;b&gt; &amp;lt; &#8364;"
    assert plain_text(markup) == ("", "café <b> &lt; €")


def test_a_stray_end_tag_is_harmless() -> None:
    """A bare less-than sign is harmless, too."""
    assert plain_text("a</script>b</p>c < d")[1] == "ab\n\nc < d"


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<nav><ul><li>Home</ul></nav><p>one</p><footer>2026</footer>", "one"),
        ("<p>two</p><main><nav>Contents</nav><p>one</main><p>three", "one"),
        ("<div role=main><div>one</div></div><div role=navigation><div>x</div>y</div>z", "one"),
        ("<div role='navigation'><div>x</div>y</div>one<div>two</div>", "one\n\ntwo"),
        ("<p>one<button>Copy</button><select><option>a</select>", "one"),
        ("<nav><p>one", "one"),  # not closed
        ("<main></main><p>one", "one"),  # filled by a script
        ("<nav>Home</nav>", "Home"),  # nothing else
        ("<main>one</main><nav>x</nav><main>two</main>", "one\n\ntwo"),
        ("<img role=navigation><p>one", "one"),
        ("<ul role='Menu menubar'><li>x</ul><p>one", "one"),
        ("<p>one<div role=button>Show more</div>", "one"),
    ],
)
def test_pages_lose_their_navigation(markup: str, text: str) -> None:
    """A tag or a role marks it; removing it never leaves a page empty."""
    assert page_text(f"<title>T</title>{markup}")[:2] == ("T", text)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<h2><button>How do I return it?</button></h2><p>a", "How do I return it?\n\na"),
        ("<h2><button>Returns</button></h2><p>a", "Returns\n\na"),
        ("<dt><div role=button>Returns</div></dt><dd>a", "Returns\n\na"),
        ("<div role=button>How do I return it?</div><p>a", "How do I return it?\n\na"),
        (
            "<button>返品するにはどうすればよいですか</button><p>a",
            "返品するにはどうすればよいですか\n\na",
        ),
        ("<menu><li>Soup<li>Bread</menu><p>a", "Soup\n\nBread\n\na"),
        ("<blockquote><p>a</p><footer>Ann, 1912</footer></blockquote>", "a\n\nAnn, 1912"),
        ("<article><p>a</p><footer>by Ann</footer></article><footer>x</footer>", "a\n\nby Ann"),
        ("<main><a href=#>Skip</a></main><p>" + "one " * 60, "Skip\n\n" + "one " * 59 + "one"),
        ("<main>" + "one " * 20 + "</main><p>" + "two " * 900, "one " * 19 + "one"),
        ("<main>Moved to a.html</main><p>Contents: one two three", "Moved to a.html"),
    ],
)
def test_what_looks_like_navigation_and_is_not(markup: str, text: str) -> None:
    """Questions on buttons, lists, footers of quotations, and pages whose main element is empty."""
    assert page_text(f"<title>T</title>{markup}")[:2] == ("T", text)


@given(st.lists(PIECES | st.sampled_from("<nav> </nav> <main> </main>".split())).map("".join))
def test_any_page_has_a_text_if_its_markup_has(markup: str) -> None:
    """Only words of the markup's text are in that of the page."""
    (title, body), (page_title, page, _) = plain_text(markup), page_text(markup)
    assert page_title == title
    assert bool(page) == bool(body)
    assert len(page.split()) <= len(body.split())


OPEN = ("<a", "<a ", "<a b='", '<a "', "</a", "<!--", "<!-- -", "<!", "<![CDATA[", "<![", "<?")
OTHER = (
    "<",
    "<a<b>",
    "<script>",
    "<script></",
    "<title>",
    "&",
    "&#",
    "&lt",
    "]]>",
    "-->",
    '<a b="x"\'',
    '<a b="">"',
    '<a b="x"">',
)


@pytest.mark.parametrize("flood", [*OPEN, *OTHER])
def test_floods_end_soon(flood: str) -> None:
    """Their length squared would be minutes; what comes before them is read."""
    for read in (plain_text, page_text):
        assert read(f"<p>before</p>{flood * 100_000}")[1].startswith("before")


def test_less_than_signs_are_text() -> None:
    """Scripts and quoted attributes that have such signs stay what they are."""
    markup = "<p>if a < b</p><script>if (a<b) x('<p>')</script><img alt='a<b'>c <!-- <b> < --> d<"
    assert plain_text(markup)[1] == "if a < b\n\nc d<"
    assert plain_text("<p title=\"it's < that\">x</p><p don't>y</p>")[1] == "x\n\ny"


@pytest.mark.parametrize("tag", ['<a href="x.html"">', '<p class="a"">', "<b id='a''>"])
def test_a_stray_quotation_mark_ends_no_tag(tag: str) -> None:
    """The text after it, which may have such marks as well, is text."""
    markup = f'{tag}It "is" Ann\'s, Bob\'s "or</p><p>5\' 3"</p>'
    assert plain_text(markup)[1] == 'It "is" Ann\'s, Bob\'s "or\n\n5\' 3"'


def headings(text: str, starts: list[int]) -> list[str]:
    return [text[start:].split("\n\n")[0] for start in starts]


def test_headings_begin_where_their_text_does() -> None:
    """Not in a table of contents, in navigation, or in a text that has the words of a heading."""
    markup = (
        "<nav><h2>Menu</h2></nav><ul><li>Bees</li><li>Their &amp; dance</li></ul>"
        "<h1>Bees</h1><p>Bees</p> fly.<h2>Their &amp;\n <i>dance</i></h2>Text.<h3></h3><p>Menu"
    )
    _, text, starts = page_text(markup)
    assert headings(text, starts) == ["Bees", "Their &\ndance"]
    assert starts[0] > text.index("Bees") and starts[1] > text.index("dance")
    title, plain = plain_text("<title>T</title><h1>One</h1>a<h2>Two</h2>b")
    assert headings(plain, heading_starts("<h1>One</h1>a<h2>Two</h2>b", plain)) == ["One", "Two"]
    assert title == "T"


def test_a_heading_ends_once() -> None:
    """Further end tags close nothing, and take no time."""
    parser = _read(_Text(), "<h1>Bees</h1>" + "</h2>x" * 3)
    assert ["".join(parser.body[part]) for part in parser.headings] == ["Bees"]


@given(st.lists(st.sampled_from(["<h2>", "</h2>", "<p>", "bees", " ", "<li>", "dance", "<nav>"])))
def test_headings_are_whole_blocks(pieces: list[str]) -> None:
    _, text, starts = page_text("".join(pieces))
    blocks = text.split("\n\n")
    assert starts == sorted(set(starts))
    assert all(text[start:].split("\n\n")[0] in blocks for start in starts)
    assert all(start == 0 or text[start - 2 : start] == "\n\n" for start in starts)
