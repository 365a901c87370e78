"""The printed numbers are those of the paper's source."""

from __future__ import annotations

import re

import pytest

from conftest import REAL_DATA
from verirec.studies.semi_synthetic.paper import HEADERS, MATRIX_UNDER_HEADER, ROWS, TABLE1

_CELL = re.compile(r"(\d\.\d{3})\s*\$\\pm\$\s*(\d\.\d{3})")


def source():
    folder = REAL_DATA.parent / "paper"
    for file in sorted(folder.glob("*.tex")) if folder.is_dir() else []:
        text = file.read_text()
        return text[text.index(r"\caption{RE on") : text.index(r"\label{tab:semi1}")]
    pytest.skip("the paper's source is not at hand: it is not beside the data")


def test_every_number_is_the_papers():
    lines = [line for line in source().split(r"\\") if _CELL.search(line)]
    printed = [[(float(mean), float(std)) for mean, std in _CELL.findall(line)] for line in lines]
    assert printed == [[tuple(TABLE1[*row, header]) for header in HEADERS] for row in ROWS]


def test_rows_and_headers_are_in_the_papers_order():
    text = source()
    assert [text.index(header) for header in HEADERS] == sorted(text.index(header) for header in HEADERS)
    names = re.findall(r"^(?:\\midrule\s*)?([A-Z][\w-]*) *[\\(&]", text, flags=re.MULTILINE)
    assert [name.lower() for name in names] == [method for method, _ in ROWS]


def test_two_headers_are_swapped_and_no_other():
    assert {header for header, matrix in MATRIX_UNDER_HEADER.items() if header != matrix} == {"ROTATE", "SKEW"}
    assert sorted(MATRIX_UNDER_HEADER.values()) == sorted(HEADERS)
