r"""Formulas of docstrings and pages as MathML, which browsers draw by themselves: no script, no font is fetched.

As a Markdown extension it reads :math:`...` in a line, and `.. math::` with what is indented below it.
"""

from __future__ import annotations

import re
import textwrap

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor

_BLOCK = re.compile(r"^\.\. math::(.*(?:\n(?:[ \t]+\S.*|[ \t]*(?=\n[ \t]+\S)))*)", re.MULTILINE)
_NEWCOMMANDS = {r"\Big": r"\big", r"\tfrac": r"\frac", r"\lVert": r"\Vert ", r"\rVert": r"\Vert "}
"""What the converter does not know, by what it does."""


def drawn(formula: str, display: str = "inline") -> str:
    r"""Return a LaTeX formula as MathML.

    Examples
    --------
    >>> drawn(r"\rho_{01}")[:30]
    '<math xmlns="http://www.w3.org'
    """
    for unknown, known in _NEWCOMMANDS.items():
        formula = re.sub(re.escape(unknown) + r"(?![A-Za-z])", known.replace("\\", r"\\"), formula)
    return convert(" ".join(formula.split()), display=display)


class Formulas(Extension):
    """The Markdown extension."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Take formulas before anything else reads their underscores."""
        md.preprocessors.register(_Blocks(md), "math-blocks", 27)
        md.inlinePatterns.register(_Inline(r":math:`([^`]+)`", md), "math", 200)


class _Blocks(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        return _BLOCK.sub(self._stashed, "\n".join(lines)).split("\n")

    def _stashed(self, found: re.Match[str]) -> str:
        drawing = drawn(textwrap.dedent(found[1]), "block")
        return f"\n{self.md.htmlStash.store(f'<p>{drawing}</p>')}\n"


class _Inline(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:  # type: ignore[override]
        return self.md.htmlStash.store(drawn(m[1])), m.start(0), m.end(0)


def makeExtension(**options: object) -> Formulas:
    """Return the extension: what Markdown looks for in a module that it is given the name of."""
    return Formulas(**options)
