"""A batch's logits: made once while a model stays as it is, and back to the parameters of what is trained alone."""

import torch

from verirec.models import CustomModel, FactorModel, Penalties
from verirec.training.data import Batch
from verirec.training.learner import Learner, minimise_together
from verirec.training.logits import BatchLogits

NONE = torch.empty(0)


def make_model(seed):
    return FactorModel(4, 3, 2, random=torch.Generator().manual_seed(seed))


def make_batch(logits=None):
    users, items, labels = torch.tensor([0, 1, 3]), torch.tensor([2, 0, 0]), torch.tensor([1.0, 0.0, 1.0])
    grid = torch.tensor([0, 2]), torch.tensor([1, 2])
    return Batch(NONE, users, items, labels, torch.ones(3), *grid, 0.25, logits=logits)


def learner_of(model):
    return Learner(model, Penalties(4.0, 2.0, 1.0), 0.01, 10.0)


class Counted(FactorModel):
    asked = 0

    def trace(self, users, items):
        self.asked += 1
        return super().trace(users, items)


def test_a_step_is_the_one_that_autograd_takes():
    found = {}
    for name, logits in (("kept", BatchLogits()), ("plain", None)):
        f, g = learner_of(make_model(1)), learner_of(make_model(2))
        batch = make_batch(logits)
        loss = (batch.on_rows(f.model) * batch.on_rows(g.model)).sum() + batch.on_grid(f.model).square().sum()
        loss = loss + batch.on_rows(f.model).exp().sum()
        minimise_together(loss, f, g, logits=logits)
        found[name] = {one.model: one.gradient for one in (f, g)}.values()
    for kept, plain in zip(*found.values(), strict=True):
        torch.testing.assert_close(kept, plain)


def test_logits_are_made_once_until_the_model_takes_a_step():
    model = Counted(4, 3, 2, random=torch.Generator().manual_seed(1))
    learner, batch = learner_of(model), make_batch(BatchLogits())
    with torch.no_grad():
        before = batch.on_rows(model)
    loss = batch.on_rows(model).sum() + batch._replace(weights=2 * batch.weights).on_rows(model).sum()
    assert model.asked == 1
    minimise_together(loss, learner, logits=batch.logits)
    with torch.no_grad():
        after = batch.on_rows(model)
    assert model.asked == 2
    assert not before.requires_grad
    assert not after.requires_grad
    assert float((after - before).abs().min()) > 0.0


def test_other_positions_are_other_logits():
    model, batch = make_model(1), make_batch(BatchLogits())
    moved = batch._replace(users=torch.tensor([2, 2, 2]))
    batch.on_rows(model)
    torch.testing.assert_close(moved.on_rows(model), model(moved.users, moved.items))


def test_a_model_that_is_not_trained_keeps_its_logits_and_gets_no_gradient():
    f, g = learner_of(make_model(1)), learner_of(make_model(2))
    batch = make_batch(BatchLogits())
    fixed = batch.on_rows(f.model)
    minimise_together((fixed * batch.on_rows(g.model)).sum(), g, logits=batch.logits)
    assert batch.on_rows(f.model) is fixed
    assert fixed.grad is None
    assert all(one.grad is None for one in f.model.parameters())


def test_a_module_of_a_users_own_is_asked_anew():
    class Random(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.values = torch.nn.Parameter(torch.zeros(4))

        def forward(self, users, items):
            return self.values[users] + torch.rand(len(users))

    batch, model = make_batch(BatchLogits()), CustomModel(Random())
    assert not torch.equal(batch.on_rows(model), batch.on_rows(model))
