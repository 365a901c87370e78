"""Files of tensors: what goes in comes out, a failed write leaves no trace, and no change goes unnoticed."""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from refusals import check_refusal
from verirec.exceptions import ModelFileError
from verirec.training import checkpoints
from verirec.training.checkpoints import FORMAT, read_tensors, write_tensors

TENSORS = {
    "floats": torch.tensor([[1.5, -2.0, math.inf], [math.nan, 0.0, -0.0]]),
    "doubles": torch.tensor([math.pi, 1e-300], dtype=torch.float64),
    "halves": torch.tensor([1.5, 2.5], dtype=torch.float16),
    "brain": torch.tensor([1.5], dtype=torch.bfloat16),
    "whole": torch.arange(-3, 3).view(2, 1, 3),
    "bytes": torch.tensor([0, 255], dtype=torch.uint8),
    "flags": torch.tensor([True, False, True]),
    "one": torch.tensor(2.0),
    "step": torch.tensor(7),
    "none": torch.zeros(0),
    "none of three": torch.zeros(0, 3, dtype=torch.int64),
    "turned": torch.arange(6.0).view(2, 3).T,
    "a.b_c.weight": torch.arange(10.0)[2:8:2],
    "of a model": torch.nn.Parameter(torch.ones(2, 2)),
}
FACTS = {
    "kind": "checkpoint",
    "done": 3,
    "history": [{"loss": 0.1 + 0.2, "validation_error": math.nan}, {}],
    "patience": {"most": None, "best": math.inf, "waited": 0},
    "words": 'größer \u2028 "quoted" \\ \n',
}


def same(one, other):
    # Byte for byte: NaN and -0 too.
    bits = [
        value.detach().contiguous().view(-1).view(torch.uint8).tolist() if value.numel() else []
        for value in (one, other)
    ]
    return one.dtype == other.dtype and one.shape == other.shape and bits[0] == bits[1]


def names_in(folder):
    return [path.name for path in folder.iterdir()]


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "new" / "folder" / "x.safetensors"
    write_tensors(path, TENSORS, FACTS)
    tensors, facts = read_tensors(path)
    assert set(tensors) == set(TENSORS)
    for name, value in TENSORS.items():
        assert same(tensors[name], value), name
        assert not tensors[name].requires_grad
    assert repr({name: facts[name] for name in FACTS}) == repr(FACTS)
    assert facts["format"] == checkpoints.FORMAT
    assert names_in(path.parent) == ["x.safetensors"]


@pytest.mark.parametrize("tensors", [{}, {"none": torch.zeros(0)}])
def test_files_of_next_to_nothing_can_be_read(tmp_path, tensors):
    write_tensors(tmp_path / "x", tensors, {})
    read, facts = read_tensors(tmp_path / "x")
    assert set(read) == set(tensors)
    assert set(facts) == {"format", "checksum"}


def test_tensors_that_share_memory_are_written_apart(tmp_path):
    whole = torch.arange(6.0)
    write_tensors(tmp_path / "x", {"whole": whole, "part": whole[2:4], "again": whole}, {})
    tensors, _ = read_tensors(tmp_path / "x")
    assert tensors["part"].tolist() == [2.0, 3.0]
    assert tensors["again"].tolist() == tensors["whole"].tolist() == whole.tolist()


def test_a_file_is_written_over_and_read_tensors_do_not_change_with_it(tmp_path):
    path = tmp_path / "x"
    write_tensors(path, {"a": torch.zeros(1_000)}, {"done": 1})
    before, _ = read_tensors(path)
    write_tensors(path, {"a": torch.ones(1_000)}, {"done": 2})
    after, facts = read_tensors(path)
    assert (before["a"].sum(), after["a"].sum(), facts["done"]) == (0, 1_000, 2)


def test_facts_and_tensors_are_not_changed_by_writing(tmp_path):
    facts, tensors = {"done": 1}, {"a": torch.ones(2, requires_grad=True)}
    write_tensors(tmp_path / "x", tensors, facts)
    assert facts == {"done": 1}
    assert tensors["a"].requires_grad


def test_the_same_contents_are_the_same_bytes(tmp_path):
    for name in ("x", "y"):
        write_tensors(tmp_path / name, TENSORS, FACTS)
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()


class Stop(BaseException):
    """As an interrupt by the user is."""


def stop(*_, **__):
    raise Stop


def full(*_, **__):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("failure", [stop, full])
@pytest.mark.parametrize("place", ["fsync", "replace"])
@pytest.mark.parametrize("before", [True, False])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, failure, place, before):
    path = tmp_path / "x"
    if before:
        write_tensors(path, {"a": torch.zeros(2)}, {"done": 1})
    old = path.read_bytes() if before else None
    with monkeypatch.context() as patch:
        patch.setattr(*((os, "fsync") if place == "fsync" else (Path, "replace")), failure)
        with pytest.raises((Stop, OSError)):
            write_tensors(path, {"a": torch.ones(2)}, {"done": 2})
    assert names_in(tmp_path) == (["x"] if before else [])
    if before:
        assert path.read_bytes() == old


def test_facts_that_cannot_be_written_leave_the_old_file(tmp_path):
    path = tmp_path / "x"
    write_tensors(path, {"a": torch.zeros(2)}, {"done": 1})
    with pytest.raises(TypeError):
        write_tensors(path, {"a": torch.ones(2)}, {"done": object()})
    assert names_in(tmp_path) == ["x"]
    assert read_tensors(path)[1]["done"] == 1


def test_files_can_be_read_by_others_like_reports(tmp_path):
    write_tensors(tmp_path / "x", {}, {})
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o644


# What is not as it was written


def good_bytes(tmp_path):
    path = tmp_path / "good"
    write_tensors(path, {"a": torch.arange(3.0), "b": torch.ones(2, dtype=torch.int64)}, {"done": 3, "key": "abc"})
    return path.read_bytes()


def foreign(metadata):
    return lambda tmp_path: safetensors.torch.save({"a": torch.ones(3)}, metadata)


def edited(old, new):
    def edit(tmp_path):
        content = good_bytes(tmp_path)
        assert content.count(old) == 1
        return content.replace(old, new)

    return edit


def written_by(difference):
    def write(tmp_path):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(checkpoints, "FORMAT", FORMAT + difference)
            return good_bytes(tmp_path)

    return write


REFUSED = {
    "empty": (lambda tmp_path: b"", "damaged"),
    "three bytes": (lambda tmp_path: b"abc", "damaged"),
    "random": (lambda tmp_path: np.random.default_rng(0).bytes(500), "damaged"),
    "zeros": (lambda tmp_path: bytes(500), "damaged"),
    "a pickle": (lambda tmp_path: b"\x80\x04\x95" + bytes(100), "damaged"),
    "text": (lambda tmp_path: b"user,item\n1,2\n" * 20, "damaged"),
    "longer": (lambda tmp_path: good_bytes(tmp_path) + b"\0", "damaged"),
    "done edited": (edited(rb"\"done\": 3", rb"\"done\": 4"), "changed after it was written"),
    "key edited": (edited(rb"\"abc\"", rb"\"abd\""), "changed after it was written"),
    "renamed": (edited(b'"a":{', b'"c":{'), "changed after it was written"),
    "another type": (edited(b'"F32"', b'"I32"'), "changed after it was written"),
    "another shape": (edited(b"[3]", b"[ 3,1]"[1:]), "damaged|changed"),
    "a newer format": (written_by(1), rf"a newer verirec \(format {FORMAT + 1}; this one reads {FORMAT}\)"),
    "an older format": (written_by(-1), rf"an older verirec \(format {FORMAT - 1}; this one reads {FORMAT}\)"),
    "foreign": (foreign(None), "not a file of verirec's"),
    "foreign with facts": (foreign({"format": "pt"}), "not a file of verirec's"),
    "facts of none": (foreign({"verirec": "null"}), "not a file of verirec's"),
    "facts in a list": (foreign({"verirec": "[1]"}), "not a file of verirec's"),
    "facts cut short": (foreign({"verirec": '{"format": 1'}), "damaged"),
    "no format": (foreign({"verirec": "{}"}), "not a file of verirec's"),
    "a format in words": (foreign({"verirec": '{"format": "1"}'}), "not a file of verirec's"),
    "no checksum": (foreign({"verirec": f'{{"format": {FORMAT}}}'}), "changed after it was written"),
    "a wrong checksum": (
        foreign({"verirec": f'{{"format": {FORMAT}, "checksum": 5}}'}),
        "changed after it was written",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_was_not_written_so_is_refused(tmp_path, what):
    content, message = REFUSED[what]
    path = tmp_path / "bad"
    path.write_bytes(content(tmp_path))
    check_refusal(lambda: read_tensors(path), ModelFileError, f"^{re.escape(str(path))}: .*({message})")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    for path in (tmp_path / "none", tmp_path, tmp_path / "none" / "x"):
        check_refusal(lambda path=path: read_tensors(path), ModelFileError, "there is no such file")


def test_no_cut_goes_unnoticed(tmp_path):
    content, path = good_bytes(tmp_path), tmp_path / "cut"
    for length in range(0, len(content), 3):
        path.write_bytes(content[:length])
        check_refusal(lambda: read_tensors(path), ModelFileError, "cut")


def test_no_flipped_bit_goes_unnoticed(tmp_path):
    content, path = bytearray(good_bytes(tmp_path)), tmp_path / "flipped"
    for place in range(len(content)):
        bit = 1 << (5 * place % 8)
        content[place] ^= bit
        path.write_bytes(content)
        content[place] ^= bit
        check_refusal(lambda: read_tensors(path), ModelFileError, "flipped")
    path.write_bytes(content)
    assert read_tensors(path)[1]["done"] == 3


def test_facts_nested_without_end_are_refused(tmp_path):
    path = tmp_path / "deep"
    path.write_bytes(safetensors.torch.save({}, {"verirec": "[" * 100_000}))
    check_refusal(lambda: read_tensors(path), ModelFileError, "damaged")


def test_facts_are_plain_json(tmp_path):
    """Nothing is unpickled: what other programs see is text and tensors."""
    path = tmp_path / "x"
    write_tensors(path, {"a": torch.ones(2)}, {"done": 3})
    with safetensors.safe_open(path, framework="np") as file:
        assert json.loads(file.metadata()["verirec"])["done"] == 3
        assert file.get_tensor("a").tolist() == [1.0, 1.0]


def test_an_interrupt_while_a_tensor_is_read_is_no_damage(tmp_path, monkeypatch):
    """The library that reads tensors turns an interrupt in its middle into an error of its own."""
    from verirec.training import checkpoints

    path = tmp_path / "a.safetensors"
    write_tensors(path, TENSORS, FACTS)
    real, calls = checkpoints._read, []

    def interrupted(path):
        calls.append(path)
        if len(calls) == 1:
            raise ValueError("could not determine the shape")
        return real(path)

    monkeypatch.setattr(checkpoints, "_read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read_tensors(path)
