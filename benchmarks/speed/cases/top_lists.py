"""The ten best items of many users, beside implicit's `recommend` and the matrix product that nobody can do without."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.speed.case import Case, Run

if TYPE_CHECKING:
    import numpy as np

PRODUCT, NUMPY = "matrix product alone", "matrix product alone, by NumPy"
K, DIM, USERS, ITEMS = 10, 64, 5_000, 100_000


def factors() -> tuple[np.ndarray, np.ndarray]:
    """Return single-precision factors of users and of items."""
    import numpy as np

    random = np.random.default_rng(0)
    users, items = (random.standard_normal((size, DIM), dtype=np.float32) for size in (USERS, ITEMS))
    return users, items


def ours(threads: int) -> Run:
    """Find them as `recommend` does."""
    import numpy as np
    import torch

    from verirec.models import FactorModel
    from verirec.training.recommendations import top_items

    torch.set_num_threads(threads)
    model = FactorModel(USERS, ITEMS, DIM, constants=False, random=torch.Generator())
    with torch.no_grad():
        for held, given in zip((model.user_factors, model.item_factors), factors(), strict=True):
            held.copy_(torch.as_tensor(given))
    return lambda: top_items(model, np.arange(USERS), ITEMS, K, None)[0]


def product(threads: int) -> Run:
    """Multiply, a few users at a time, and find nothing."""
    import torch

    torch.set_num_threads(threads)
    users, items = map(torch.as_tensor, factors())

    def run() -> torch.Tensor:
        for part in users.split(64):
            block = part @ items.T
        return block

    return run


def implicit(threads: int) -> Run:
    """Find them by implicit."""
    import numpy as np
    from implicit.cpu.als import AlternatingLeastSquares
    from scipy.sparse import csr_matrix

    model = AlternatingLeastSquares(factors=DIM, num_threads=threads)
    model.user_factors, model.item_factors = factors()
    nothing = csr_matrix((USERS, ITEMS), dtype=np.float32)
    everyone = np.arange(USERS)
    return lambda: model.recommend(everyone, nothing, N=K, filter_already_liked_items=False)[0]


def implicit_by(kernels: str) -> Run:
    """Run implicit by the kernels that OpenBLAS has for an older processor."""
    os.environ["OPENBLAS_CORETYPE"] = kernels
    return implicit(1)


def numpy_product() -> Run:
    """Multiply by NumPy."""
    users, items = factors()

    def run() -> np.ndarray:
        for start in range(0, USERS, 64):
            block = users[start : start + 64] @ items.T
        return block

    return run


CONTENDERS: dict[str, Callable[[int], Run]] = {"verirec": ours, "implicit": implicit, PRODUCT: product}
CASES = [
    Case(
        f"top-lists/{threads}",
        "ten best items of each user, 64 factors",
        f"{USERS:,} users, {ITEMS:,} items",
        {name: partial(contender, threads) for name, contender in CONTENDERS.items()},
        threads=threads,
        apart=True,
    )
    for threads in (1, 2)
] + [
    Case(
        "top-lists/kernels",
        "the same, by kernels of older processors too",
        f"{USERS:,} users, {ITEMS:,} items",
        {
            "verirec": partial(ours, 1),
            "implicit": partial(implicit, 1),
            "implicit, AVX2 kernels": partial(implicit_by, "Haswell"),
            "implicit, SSE kernels": partial(implicit_by, "Nehalem"),
            PRODUCT: partial(product, 1),
            NUMPY: numpy_product,
        },
        threads=1,
        rounds=2,
        apart=True,
    )
]
