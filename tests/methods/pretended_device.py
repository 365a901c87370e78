"""A second device without one: tensors that are sent to "meta" stay in memory, and are held to what a device asks for.

An operation that takes tensors of both places, a tensor of double precision there, or NumPy at its memory, is an error,
as it is on a graphics card or on Apple's; so is, while steps are taken, anything that makes the processor wait for it.
"""

from __future__ import annotations

from contextlib import contextmanager

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from verirec.training.solvers.gradient import GradientSolver

DEVICE = torch.device("meta")
_MOVES = (Tensor.to, Tensor.cpu, Tensor.copy_, torch._has_compatible_shallow_copy_type)
_WAITS = (Tensor.item, Tensor.cpu, Tensor.tolist, Tensor.__bool__, Tensor.__float__, Tensor.__int__, torch.nonzero)
_SET = (Tensor.data.__set__, Tensor.grad.__set__)


class PlacementError(AssertionError):
    """What a device would not have done."""


def _there(value) -> bool:
    return getattr(value, "pretended", False)


def _here(value):
    return torch.device("cpu") if isinstance(value, torch.device | str) else value


class PretendedDevice(TorchFunctionMode):
    """While it is entered, "meta" is the second device."""

    stepping = False

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        there = any(_there(one) for one in tensors)
        if func == Tensor.device.__get__:
            return DEVICE if there else func(*args)
        self._check(func, tensors, there)
        asked = self._asked(func, args, kwargs)
        if "device" in kwargs:
            kwargs["device"] = _here(kwargs["device"])
        found = func(*(map(_here, args) if func is Tensor.to else args), **kwargs)
        if func == Tensor.data.__set__:
            args[0].pretended = _there(args[1])
        elif func is Tensor.copy_ or func == Tensor.grad.__set__:
            pass
        elif asked is None:
            self._mark(found, there, args)
        else:
            found = found.detach() if any(found is one for one in args) else found
            self._mark(found, asked, args)
        return found

    def _check(self, func, tensors, there):
        name = getattr(func, "__name__", str(func))
        if there and func not in (*_MOVES, *_SET) and not all(_there(one) for one in tensors):
            raise PlacementError(f"{name} of tensors on two devices")
        if there and func is Tensor.numpy:
            raise PlacementError("NumPy cannot look at a device's memory")
        if there and self.stepping and func in _WAITS:
            raise PlacementError(f"{name} waits for the device in a step")

    def _asked(self, func, args, kwargs):
        """Return whether the second device is asked for, or the processor; `None` for neither."""
        if func is Tensor.cpu:
            return False
        named = [kwargs.get("device"), *(args[1:] if func is Tensor.to else ())]
        given = [one for one in named if isinstance(one, torch.device | str)]
        return torch.device(given[0]) == DEVICE if given else None

    def _mark(self, found, there, args):
        for one in tree_leaves(found):
            if isinstance(one, Tensor) and not any(one is given for given in args):
                one.pretended = there
                if there and one.dtype == torch.float64:
                    raise PlacementError("double precision on the device")


@contextmanager
def pretended_device(patch, *, may_wait=False):
    """Enter the device, and let steps wait for nothing, unless they may."""
    mode, train = PretendedDevice(), GradientSolver._train_on

    def watched(self, batch, after_prediction):
        mode.stepping = not may_wait
        try:
            return train(self, batch, after_prediction)
        finally:
            mode.stepping = False

    patch.setattr(GradientSolver, "_train_on", watched)
    with mode:
        yield mode
