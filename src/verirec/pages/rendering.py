"""Pages from templates. Whatever comes from data is shown as text, never as HTML."""

from __future__ import annotations

from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup


@cache
def _environment(package: str) -> jinja2.Environment:
    """Read templates from a package's `templates`, and what they extend from ours."""
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package), jinja2.PackageLoader(__package__)]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(package: str, template: str, **values: Any) -> str:
    """Fill a template of a package's `templates`, and return the page."""
    return _environment(package).get_template(template).render(**values)


def render_text(package: str, template: str, **values: Any) -> str:
    """Fill a template that is not HTML, such as Markdown made of our own numbers."""
    text = _environment(package).overlay(autoescape=False)
    return f"{text.get_template(template).render(**values)}\n"


def picture(svg: str) -> Markup:
    """Mark an SVG of our own making as safe to stand in a page."""
    return Markup(svg)
