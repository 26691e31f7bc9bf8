"""Somebody's text in a Markdown file: it comes back as it was, and no reader acts on it."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from recollect.markdown import _LANGUAGES, escape_line, escape_markdown, unescape_line, unescape_markdown

PIECES = r"""
<img src=x> <iframe src="https://a.example"></iframe> <!-- --> <script <? <% ![a](https://a.example/b.png) ![[n.md]]
[[n|m]] [a](b) [a]: /b [^1]: ` `` ``` ```` ~~~ ~~~~ ```dataviewjs ~~~mermaid ```text ```text\ x `=\ 1` `$=\ dv` | |a|b|
|-|-| %% $$ #tag #\ h ^m-1 > >\ [!note]- - 1. \\ \` \[ \n \< x word & &lt; &#91; --- *** === : ( ) ] [ ! < { {{ }} _
http://a`b $x$ $\href{https://a.example}{x}$ ^[note]
""".split()
READER = MarkdownIt("commonmark").enable("table")

hostile = st.lists(
    st.one_of(st.sampled_from(PIECES), st.sampled_from(["\n", "\n\n", " ", "    ", "\t"]), st.text(max_size=3)),
    max_size=30,
).map(lambda parts: "".join(part.replace("\\ ", " ") for part in parts).replace("\r", "\n"))


def tokens(text: str) -> list[Token]:
    found = READER.parse(text)
    return found + [child for each in found for child in each.children or []]


def dangers(text: str) -> list[str]:
    """What a reader would act on."""
    found = [each.type for each in tokens(text) if each.type in ("html_block", "html_inline", "image", "link_open")]
    found += [
        each.info
        for each in tokens(text)
        if each.type == "fence" and each.info.split()[:1] and not _is_known(each.info)
    ]
    found += [
        each.content
        for each in tokens(text)
        if each.type == "code_inline" and each.content.strip().startswith(("=", "$="))
    ]
    return found


def _is_known(info: str) -> bool:
    return info.split()[0].lower() in _LANGUAGES


@given(hostile)
@settings(max_examples=600, deadline=None)
@example("a ` b\n`<img src=x onerror=1>`")
@example("|a|b|\n|-|-|\n|`c | <img src=x>`|d|")
@example("[a](http://x`y) <img src=x> `")
@example("- a\n  ```\n```\n<img src=x>\n```")
@example("```\n  ```\n<img src=x>\n```")
@example("[a\nb]: <img>\n![a\nb]")
def test_hostile_text_comes_back_and_no_reader_acts_on_it(text: str) -> None:
    escaped = escape_markdown(text)
    assert unescape_markdown(escaped) == text
    assert dangers(f"# Title\n\n### user\n\n{escaped}\n\n### user\n\nend") == []
    line = escape_line(text)
    assert "\n" not in line and unescape_line(line) == text
    assert dangers(f"- **fact** (none) {line} — said ^m-1") == []


def test_notes_and_formulas_of_obsidian_do_nothing_in_it() -> None:
    """CommonMark knows neither: a formula may hold a link, and a note within a line is shown elsewhere."""
    assert escape_markdown(r"$\href{https://a.example}{x}$ ^[n]") == r"\$\href{https://a.example}{x}$ \^[n]"
    assert escape_line("for $20 $\n\\href{a}$") == r"for \$20 \$\n\href{a}\$"
    assert escape_markdown("a $ b and `$HOME`, 2 ^ [3]") == "a $ b and `$HOME`, 2 ^ [3]"
