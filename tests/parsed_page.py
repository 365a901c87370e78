"""Pages as a reader's program sees them: elements, text and tables."""

from __future__ import annotations

import re
from html.parser import HTMLParser

LOADING = {"src", "href", "xlink:href", "srcset", "data", "action", "poster", "background"}
UNWANTED = {"script", "link", "iframe", "object", "embed", "img", "base", "form", "image"}
HIDDEN = {"style", "title", "metadata"}


class Page(HTMLParser):
    """A parsed page: tags with their attributes, and the text of each."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.source = text
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.tables: dict[str | None, list[list[str]]] = {}
        self._table: list[list[str]] | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in {"meta", "br"}:
            self._open.append(tag)
        if tag == "table":
            self._table = self.tables.setdefault(dict(attrs).get("id"), [])
        elif tag == "tr" and self._table is not None:
            self._table.append([])
        elif tag in {"td", "th"} and self._table is not None:
            self._table[-1].append("")
        elif tag == "br" and self._table is not None:
            self._table[-1][-1] += "\n"

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass
        if tag == "table":
            self._table = None

    def handle_data(self, data):
        self.texts.append((self._open[-1] if self._open else "", data))
        if self._table is not None and {"td", "th"} & set(self._open):
            self._table[-1][-1] += data

    @property
    def tags(self):
        return {tag for tag, _ in self.elements}

    @property
    def ids(self):
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]

    @property
    def text(self):
        """What is read on the page, with single spaces."""
        return " ".join(" ".join(data for tag, data in self.texts if tag not in HIDDEN).split())

    @property
    def plot_texts(self):
        """What is written in the plots."""
        return [" ".join(data.split()) for tag, data in self.texts if tag in {"text", "tspan"} and data.strip()]

    @property
    def references(self):
        """The ids that something on the page refers to."""
        referred = {
            value[1:]
            for _, attributes in self.elements
            for name, value in attributes.items()
            if name in LOADING and value.startswith("#")
        }
        return referred | set(re.findall(r"url\(#([^)]+)\)", self.source))

    def check_self_contained(self):
        """Expect nothing that is loaded or run."""
        assert not self.tags & UNWANTED
        for tag, attributes in self.elements:
            for name, value in attributes.items():
                assert not name.startswith("on"), (tag, name)
                assert name not in LOADING or value.startswith("#"), (tag, name, value)
                assert "javascript:" not in (value or "").lower()
        assert not re.search(r"@import|url\(\s*['\"]?(?!#)", self.source)
        assert "http-equiv" not in {name for _, attributes in self.elements for name in attributes}


IF_NOT_TASTE = "corrected, if selection depends on user and item only"
KINDS = {
    "naive": "as logged",
    "corrected": IF_NOT_TASTE,
    "survey-ppi": "by the survey",
    "audited-dr": "by the audit",
    "range": "range, if liked pairs are logged at 1 to 20 times the odds of others",
}


def as_shown(one):
    """Write an estimate of summary.json as the page does: value or range, and interval."""
    value = f"{one['value']:.4f}" if one["value"] is not None else " to ".join(f"{end:.4f}" for end in one["range"])
    return value, f"{one['low']:.4f} to {one['high']:.4f}"


def check_estimates_table(table, summary):
    """Expect the page's table of estimates to have the figures of summary.json, the headline last of each."""
    truth = summary["truth"]
    head = ["Recommender", *(["Truth"] if truth else []), "Estimate", "Value", "95% interval"]
    assert [cell.strip() for cell in table[0]] == head
    expected = []
    for name, headline in summary["headline"].items():
        estimates = summary["recommenders"][name]
        corrected = next(estimates[estimator] for estimator in ("ome-dr", "ome-snips") if estimator in estimates)
        lines = {"as logged": estimates["naive"], IF_NOT_TASTE: corrected}
        if headline["estimator"] in KINDS:
            lines[KINDS[headline["estimator"]]] = estimates[headline["estimator"]]
        assert headline == {"estimator": headline["estimator"]} | list(lines.values())[-1]
        for place, (kind, one) in enumerate(lines.items()):
            known = [f"{truth[name]:.4f}" if place == 0 and name in truth else ""] if truth else []
            expected.append([name if place == 0 else "", *known, kind, *as_shown(one)])
    assert [[cell.strip() for cell in row] for row in table[1:]] == expected
