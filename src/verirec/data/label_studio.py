"""Label Studio's form of questions and answers: tasks out, an export back in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from verirec.exceptions import FileFormatError

LABELLING: Final = """<View>
  <Header value="$question"/>
  <Choices name="true_label" toName="question" choice="single" required="true">
    <Choice value="yes"/><Choice value="no"/>
  </Choices>
  <Text name="question" value="$about"/>
</View>"""
"""The labelling interface that the tasks are made for."""
_KEPT: Final = ("kind", "user", "item", "probability")


def label_studio_tasks(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make a task of each pair to ask about; what is needed to read the answer back goes with it.

    Examples
    --------
    >>> label_studio_tasks([{"kind": "random", "user": "ann", "item": 7, "probability": 0.5, "title": "Alien"}])
    [{'data': {'question': 'Does ann like Alien?', 'about': 'user ann, item 7', 'kind': 'random', 'user': 'ann', \
'item': 7, 'probability': 0.5}}]
    """
    return [
        {
            "data": {
                "question": f"Does {row['user']} like {row.get('title') or row['item']}?",
                "about": f"user {row['user']}, item {row['item']}",
            }
            | {name: row[name] for name in _KEPT}
        }
        for row in rows
    ]


def read_label_studio(file: Path) -> pa.Table:
    """Read an export in Label Studio's JSON: a row an answer, with who gave it; skipped tasks have none.

    Examples
    --------
    >>> import tempfile
    >>> task = {"data": {"kind": "random", "user": "ann", "item": 7, "probability": 0.5}}
    >>> task["annotations"] = [{"completed_by": 3, "result": [{"value": {"choices": ["yes"]}}]}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "export.json").write_text(json.dumps([task]))
    ...     read_label_studio(Path(folder, "export.json")).to_pylist()
    [{'kind': 'random', 'user': 'ann', 'item': 7, 'probability': 0.5, 'true_label': 'yes', 'person': '3'}]
    """
    try:
        tasks = json.loads(file.read_text(encoding="utf-8"))
        rows = [row for task in tasks for row in _answers(task)]
        return pa.Table.from_pylist(rows, schema=_schema(rows))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, pa.ArrowException) as error:
        raise FileFormatError(
            f"{file.name} is not an export of Label Studio's of tasks that verirec plan made: "
            f"{type(error).__name__}: {error}"
        ) from None


def _answers(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row for each answer of a task, and one without an answer where there is none."""
    told = {name: task["data"][name] for name in _KEPT}
    given = [one for one in task.get("annotations", ()) if not one.get("was_cancelled") and one.get("result")]
    for one in given:
        person = one.get("completed_by")
        person = person.get("email", person.get("id")) if isinstance(person, dict) else person
        yield told | {"true_label": one["result"][0]["value"]["choices"][0], "person": str(person)}
    if not given:
        yield told | {"true_label": None, "person": None}


def _schema(rows: list[dict[str, Any]]) -> pa.Schema:
    kinds = {
        name: pa.int64() if all(isinstance(row[name], int) for row in rows) else pa.string()
        for name in ("user", "item")
    }
    return pa.schema(
        [
            ("kind", pa.string()),
            *kinds.items(),
            ("probability", pa.float64()),
            ("true_label", pa.string()),
            ("person", pa.string()),
        ]
    )
