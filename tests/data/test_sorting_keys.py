"""Numbers that sort as texts do, against Arrow's own order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verirec.data.text_ids import sorting_keys


@given(st.lists(st.text(max_size=12), min_size=1, unique=True), st.text(max_size=9), st.integers(0, 3))
def test_keys_sort_as_texts_do(texts, before, skipped):
    ids = pa.array([before] * skipped + [before + text for text in texts]).slice(skipped)
    keys = sorting_keys(ids)
    if keys is not None:
        assert np.argsort(keys, kind="stable").tolist() == pc.sort_indices(ids).to_pylist()


@pytest.mark.parametrize("texts", [["a", "bcdefghij"], ["a", "a\0"], []])
def test_texts_without_keys_are_sorted_otherwise(texts):
    assert sorting_keys(pa.array(texts, pa.string())) is None
