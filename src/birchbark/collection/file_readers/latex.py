r"""Which commands of LaTeX does pandoc leave out with the words in their braces?

Those that it does not know, as packages define them, and captions outside tables and figures. They
are defined so that the words stay: `\term{canoe}` is canoe.
"""

from __future__ import annotations

import re

# Whose braces hold no text.
WORDLESS = frozenset(
    (
        "addcontentsline addtocounter addtolength arraystretch begin bibitem bibliography "
        "bibliographystyle captionsetup cellcolor cline cmidrule color counterwithin cpageref "
        "Crefname crefname DeclareFieldFormat DeclareGraphicsExtensions DeclareUnicodeCharacter "
        "definecolor documentclass end enlargethispage ExecuteBibliographyOptions fontfamily "
        "fontsize fontspec geometry graphicspath hphantom hspace hypersetup hyphenation import "
        "include includegraphics includeonly includepdf index input label linespread "
        "lstdefinelanguage lstdefinestyle lstset markboth markright mdfsetup minipage nameref "
        "newcolumntype newcounter newfontfamily newlength newlist newtcolorbox newtheorem nocite "
        "numberwithin pagecolor pagenumbering pagestyle pgfkeys pgfplotsset phantom refstepcounter "
        "RequirePackage rowcolor rowcolors rule selectlanguage setbeamercolor setbeamerfont "
        "setbeamersize setbeamertemplate setcitestyle setcounter setlength setlist setmainfont "
        "setmainlanguage setmonofont setotherlanguage setsansfont setstretch settowidth sisetup "
        "stepcounter subimport tcbset theoremstyle thispagestyle tikzset titleformat titlespacing "
        "usecolortheme usefonttheme useinnertheme useoutertheme usepackage usepgfplotslibrary "
        "usetheme usetikzlibrary vphantom vref vspace"
    ).split()
)
# Of whose braces only the last hold text, after lengths, colours and the like.
LAST = frozenset(
    (
        "adjustbox captionof fcolorbox hyperlink multicolumn multirow raisebox resizebox "
        "rotatebox scalebox"
    ).split()
)
CAPTION = rb"\caption"
SKIPPED = "[INFO] Skipped '"  # what pandoc writes before each command that it leaves out
MOST_COMMANDS, MOST_ARGUMENTS = 1_000, 8
_COMMAND = re.compile(r"\\([a-zA-Z]{1,60})(?:\[[^\[\]]*\])?(?=\{)")


def with_definitions(raw: bytes, messages: str) -> bytes:
    """Return a file with definitions of the commands that pandoc has left out; as it is for none.

    raw: without a byte order mark. messages: see `definitions`.
    """
    defined = definitions(messages).encode()
    if CAPTION in raw:
        defined += rb"\renewcommand{\caption}[2][]{ #2 }"
        raw = raw.replace(CAPTION + b"*", CAPTION)
    return defined + b"\n" + raw if defined else raw


def definitions(messages: str) -> str:
    r"""Return definitions of the commands that pandoc has left out with words; empty for none.

    messages: what pandoc writes with --verbose. A command becomes what is in its braces, divided by
    blanks, without what is in brackets before them; of LAST, what is in the last ones.
    """
    arguments: dict[str, int] = {}
    for message in messages.split(SKIPPED)[1:]:
        found = _COMMAND.match(message)
        if found and found[1] not in WORDLESS and len(arguments) < MOST_COMMANDS:
            count = min(_arguments(message[found.end() :]), MOST_ARGUMENTS)
            arguments[found[1]] = min(count, arguments.get(found[1], MOST_ARGUMENTS))
    return "".join(
        rf"\newcommand{{\{name}}}[{count + 1}][]{{{' '.join(f'#{n}' for n in _kept(name, count))}}}"
        for name, count in arguments.items()
        if count > (name in LAST)
    )


def _kept(name: str, count: int) -> range:
    """Return the numbers of the arguments that are text; the first is what is in brackets."""
    return range(count + 1 if name in LAST else 2, count + 2)


def _arguments(text: str) -> int:
    """Return how many pairs of braces the text begins with."""
    count = depth = 0
    for character in text.replace(r"\{", "").replace(r"\}", ""):
        depth += (character == "{") - (character == "}")
        if depth == 0 and character != "}":
            break
        count += depth == 0
    return count
