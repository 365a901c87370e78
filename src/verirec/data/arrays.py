"""From positions and labels in arrays to the columns of a log."""

from __future__ import annotations

from typing import Any

from verirec.data.features import feature_matrix
from verirec.data.gate import grid_size, validate_rows
from verirec.data.ids import IdMap
from verirec.data.levels import checked_levels
from verirec.exceptions import DataError


def array_columns(
    columns: dict[str, Any], *, positive_from: float | None, duplicates: str, levels: Any = None
) -> dict[str, Any]:
    """Pass positions and labels through the gate, with the catalogues and features beside them."""
    checked: dict[str, Any] = {} if levels is None else {"levels": checked_levels(levels)}
    for side in ("user", "item"):
        size = grid_size(f"n_{side}s", columns[f"n_{side}s"])
        ids, features = columns.get(f"{side}_ids"), columns.get(f"{side}_features")
        catalogue = IdMap(size) if ids is None else IdMap.in_order(ids, name=f"{side}_ids")
        if len(catalogue) != size:
            raise DataError(f"{side}_ids must have n_{side}s={size} ids; got {len(catalogue)}")
        checked |= {f"n_{side}s": size, f"{side}_ids": catalogue}
        if features is not None:
            checked[f"{side}_features"] = feature_matrix(f"{side}_features", features, size)
    rows = validate_rows(
        columns,
        checked["n_users"],
        checked["n_items"],
        positive_from=positive_from,
        duplicates=duplicates,
        levels=checked.get("levels"),
    )
    # Copies: what the caller does with theirs later must not change the log.
    return rows | checked | {"users": rows["users"].copy(), "items": rows["items"].copy()}
