"""Figures by matplotlib in one style, as SVG to stand in a page and as files."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from verirec.pages.rendering import picture
from verirec.pages.writing import write_file

COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#000000")
"""Okabe and Ito's palette; everything is told apart by shape or place as well."""
MARKERS: Final = ("o", "s", "^", "v", "P", "X")
TRUTH_COLOUR: Final = "#d55e00"

PICTURE_STYLE: Final[dict[Any, Any]] = {
    "font.family": "sans-serif",
    "font.size": 11,
    "svg.fonttype": "none",
    "svg.hashsalt": "verirec",
    # A name with dollar signs is a name, not a formula.
    "text.parse_math": False,
}
_RESOLUTION: Final = 110
_TOLD: Final = "told-"


def as_svg(figure: Figure, prefix: str) -> Markup:
    """Return a figure as SVG to stand in a page: no XML header, no date, and ids of its own, by a prefix."""
    with mpl.rc_context(PICTURE_STYLE), warnings.catch_warnings():
        # Text stays text, and the browser has the glyphs that matplotlib's own font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        FigureCanvasSVG(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    own = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", text[text.index("<svg") :])
    return picture(re.sub(rf'(<g id="{prefix}-{_TOLD}([0-9a-f]+)(?:-\d+)?")>', _with_words, own))


def tell(artist: Any, words: str) -> None:
    """Have what is drawn say something to who points at it or reaches it by the keyboard, and to screen readers."""
    # Words travel in the id, which is all that an SVG keeps of an artist; hexadecimal, as an id has no blanks.
    artist.set_gid(f"{_TOLD}{words.encode().hex()}")


def _with_words(found: re.Match[str]) -> str:
    words = escape(bytes.fromhex(found[2]).decode())
    shown = f'<title>{words}</title><text class="told" x="4" y="12">{words}</text>'
    return f'{found[1]} tabindex="0" role="img" aria-label="{words}">{shown}'


def make_figure(draw: Callable[[Figure], None], *, height: float, width: float = 7.0) -> Figure:
    """Make a figure in the style of all, and have something drawn in it."""
    with mpl.rc_context(PICTURE_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
    return figure


def plain_axes(axes: Any, *, grid: str = "y") -> None:
    """Leave the frame's lower left corner only, and a light grid behind."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color="#dddddd")
    axes.set_axisbelow(True)


def write_pictures(folder: str | Path, name: str, figure: Figure) -> None:
    """Write a figure as NAME.png and NAME.svg, the same bytes for the same numbers."""
    write_file(Path(folder, f"{name}.svg"), f"{as_svg(figure, name)}\n".encode())
    write_file(Path(folder, f"{name}.png"), as_png(figure))


def as_png(figure: Figure) -> bytes:
    """Return a figure as a PNG file has it, the same bytes for the same numbers."""
    buffer = io.BytesIO()
    with mpl.rc_context(PICTURE_STYLE):
        FigureCanvasAgg(figure)
        figure.savefig(buffer, format="png", dpi=_RESOLUTION, metadata={"Software": None})
    return buffer.getvalue()
