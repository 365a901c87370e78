"""Pictures of who errs."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from verirec.assessment.error_plots import errors_plot
from verirec.pages.figures import as_svg


def audited(world, size):
    rows = np.random.default_rng(0).choice(len(world.log), size, replace=False)
    pairs = world.log.users[rows], world.log.items[rows]
    return vr.AuditSample(*pairs, world.at(*pairs).true_labels)


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(60, 80, observed=0.3, near_threshold=True, random_state=0)


def test_a_curve_is_drawn_with_its_band_and_the_audits_shares(world):
    curve = vr.AuditErrorCurve().fit(world.log, audit=audited(world, 400))
    (axes,) = errors_plot(curve).axes
    lines = [line for line in axes.lines if len(line.get_xdata()) > 1]
    assert [line.get_label() for line in lines] == ["likes logged as dislikes (ρ01)", "dislikes logged as likes (ρ10)"]
    band = curve.rho01(lines[0].get_xdata())
    assert lines[0].get_ydata() == pytest.approx(band.values)
    assert len(axes.collections) == 2
    points = sum(len(line.get_xdata()) == 1 for line in axes.lines)
    assert points == sum(len(shares) for shares in curve.shares().values())
    assert "audited pairs with scores around" in as_svg(errors_plot(curve), "errors")


def test_groups_are_drawn_with_intervals(world):
    found = vr.AuditErrors(item_groups=np.arange(80) % 3).fit(world.log, audit=audited(world, 400))
    (axes,) = errors_plot(found, 0.9).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "1", "2"]
    assert axes.lines[0].get_xdata() == pytest.approx(found.wrong[:, 1])
    assert axes.lines[1].get_xdata() == pytest.approx(found.wrong[:, 0])


@pytest.mark.filterwarnings("ignore::verirec.exceptions.SmallAuditWarning")
def test_of_many_groups_those_with_most_audited_pairs_are_drawn(world):
    found = vr.AuditErrors(item_groups=np.arange(80) % 40).fit(world.log, audit=audited(world, 400))
    (axes,) = errors_plot(found).axes
    counts = found.audited.sum(axis=(1, 2))
    shown = [int(label.get_text()) for label in axes.get_yticklabels()]
    places = [found.names.index(str(one)) for one in shown]
    assert len(shown) == 20
    assert counts[places].min() >= np.delete(counts, places).max()


def test_levels_have_a_line_each():
    world = vr.simulate.stars(60, 80, random_state=0)
    audit = vr.AuditSample(*world.audit(300, 0), levels=world.levels)
    (axes,) = errors_plot(vr.who_errs(world.log, audit=audit, by="score")).axes
    assert [line.get_label() for line in axes.lines] == [f"true level {level}" for level in range(1, 6)]
