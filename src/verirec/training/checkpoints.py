"""Files of tensors and of plain facts: written whole or not at all, checked when read, never pickled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor

from verirec.atomic_write import replace_file
from verirec.exceptions import ModelFileError
from verirec.formatting import short

FORMAT: Final = 3
_FACTS: Final = "verirec"
_DAMAGED: Final = (SafetensorError, OSError, ValueError, RecursionError)


def write_tensors(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write tensors with facts about them into one file: first beside it, then in its place."""
    content = file_of_tensors(tensors, facts)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content)


def file_of_tensors(tensors: dict[str, Tensor], facts: dict[str, Any]) -> bytes:
    """Return what is in such a file: the facts carry a checksum of the tensors and of themselves."""
    plain = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    body = facts | {"format": FORMAT, "checksum": ""}
    body["checksum"] = _checksum(plain, body)
    return bytes(tensors_to_bytes(plain, {_FACTS: json.dumps(body)}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read them back; what was changed, cut short or written by a newer version is a `ModelFileError`."""
    if not path.is_file():
        raise ModelFileError(f"{path}: there is no such file")
    facts, tensors = _contents(path)
    if not isinstance(facts, dict) or not isinstance(facts.get("format"), int):
        raise ModelFileError(f"{path}: not a file of verirec's")
    if facts["format"] != FORMAT:
        age = "a newer" if facts["format"] > FORMAT else "an older"
        raise ModelFileError(f"{path}: written by {age} verirec (format {facts['format']}; this one reads {FORMAT})")
    if facts.get("checksum") != _checksum(tensors, facts | {"checksum": ""}):
        raise ModelFileError(f"{path}: its contents were changed after it was written")
    return tensors, facts


def facts_alone(path: Path) -> dict[str, Any]:
    """Return the facts of a file for words about it, unchecked; none of one that cannot be read."""
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {}).get(_FACTS, "null"))
    except _DAMAGED:
        return {}
    return facts if isinstance(facts, dict) else {}


def _contents(path: Path) -> tuple[Any, dict[str, Tensor]]:
    """Read what a file holds. An interrupt in the middle of a tensor comes out as if the file were damaged."""
    try:
        return _read(path)
    except _DAMAGED as error:
        first = error
    try:
        _read(path)
    except _DAMAGED:
        raise ModelFileError(f"{path}: not a file of verirec's, or a damaged one ({first})") from None
    raise KeyboardInterrupt


def _read(path: Path) -> tuple[Any, dict[str, Tensor]]:
    with safe_open(path, framework="pt") as file:
        facts = json.loads((file.metadata() or {}).get(_FACTS, "null"))
        return facts, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


@contextmanager
def whole(path: Path) -> Iterator[None]:
    """Say that a file is not whole, where what it holds cannot be made sense of, in whatever way that shows.

    Examples
    --------
    >>> with whole(Path("model")):
    ...     {}["user_ids"]
    Traceback (most recent call last):
    verirec.exceptions.ModelFileError: model: not a whole file of verirec's (KeyError('user_ids'))
    """
    try:
        yield
    except (ModelFileError, OSError):
        raise
    except Exception as error:
        reason = short(error, max=120)
        raise ModelFileError(f"{path}: not a whole file of verirec's ({reason})") from None


def _checksum(tensors: dict[str, Tensor], facts: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        # Not `view(-1)`: where a side has one element its stride can be anything, and bytes need a stride of 1.
        flat = torch.empty(value.numel(), dtype=value.dtype).copy_(value.flatten())
        digest.update(flat.view(torch.uint8).numpy().tobytes() if len(flat) else b"")
    return digest.hexdigest()
