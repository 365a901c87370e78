"""A notebook as Markdown: its text, its code, and what the code printed when it was last run."""

from __future__ import annotations

from typing import Any


def as_markdown(notebook: dict[str, Any]) -> str:
    r"""Return the text of a notebook's page.

    Examples
    --------
    >>> print(as_markdown({"cells": [{"cell_type": "markdown", "source": ["# Title"]}]}))
    # Title
    <BLANKLINE>
    """
    return "\n\n".join("\n\n".join(_of_cell(cell)) for cell in notebook["cells"]) + "\n"


def _of_cell(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    return [_fenced(source, "python"), *(_of_output(one) for one in cell["outputs"])]


def _of_output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _fenced("".join(output["text"]).rstrip(), "text")
    data = {kind: "".join(value) if isinstance(value, list) else value for kind, value in output["data"].items()}
    if "image/png" in data:
        return f'<p><img alt="" src="data:image/png;base64,{data["image/png"].strip()}"></p>'
    if "text/html" in data:
        # A blank line would end the block of HTML.
        return "<div>" + "\n".join(line for line in data["text/html"].splitlines() if line.strip()) + "</div>"
    return _fenced(data["text/plain"], "text")


def _fenced(text: str, language: str) -> str:
    return f"```{language}\n{text}\n```"
