"""Pages from templates. Whatever comes from data is shown as text, never as HTML."""

from __future__ import annotations

from typing import Any

import jinja2
from markupsafe import Markup

_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("verirec.reports"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(template: str, **values: Any) -> str:
    """Fill a template of `reports/templates`."""
    return _ENVIRONMENT.get_template(template).render(**values)


_TEXT = _ENVIRONMENT.overlay(autoescape=False)


def render_text(template: str, **values: Any) -> str:
    """Fill a template that is not HTML, such as Markdown made of our own numbers."""
    return f"{_TEXT.get_template(template).render(**values)}\n"


def picture(svg: str) -> Markup:
    """Mark an SVG of our own making as safe to stand in a page."""
    return Markup(svg)
