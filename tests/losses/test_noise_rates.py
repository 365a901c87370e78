import math
from dataclasses import FrozenInstanceError
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from plain_formulas.correction import chance
from refusals import check_refusal
from verirec import GroupedNoiseRates, NoiseRates, NoiseRegion
from verirec.exceptions import NoiseRateError, NoiseRateWarning, ParameterError
from verirec.losses import AuditOrigin

# Weaker signals warn, see below.
RATES = st.tuples(st.floats(0, 0.9), st.floats(0, 0.9)).filter(lambda rates: 1 - rates[0] - rates[1] >= 0.1)


@given(RATES)
def test_kappa_is_what_noise_leaves_of_the_signal(rates):
    assert NoiseRates(*rates).kappa == pytest.approx(1 - sum(rates))
    assert NoiseRates(*rates).kappa > 0


def test_rates_are_frozen_floats_whatever_number_they_came_as():
    rates = NoiseRates(0, np.float32(0.5))
    assert (type(rates.rho01), type(rates.rho10)) == (float, float)
    assert rates == NoiseRates(0.0, 0.5)
    with pytest.raises(FrozenInstanceError):
        rates.rho01 = 0.3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-0.1, 0.1), r"^rho01 must be a number of at least 0 and below 1; got -0\.1$"),
        ((0.1, -0.1), r"^rho10 must be .*; got -0\.1$"),
        ((1, 0), r"^rho01 must be .*; got 1$"),
        ((0, 1.0), r"^rho10 must be .*; got 1\.0$"),
        ((np.nan, 0), r"^rho01 must be .*; got nan$"),
        ((0, np.inf), r"^rho10 must be .*; got inf$"),
        (("0.1", 0), r"^rho01 must be .*; got '0\.1'$"),
        ((0.1, None), r"^rho10 must be .*; got None$"),
        ((0.5, 0.5), r"^rho01 \+ rho10 must be below 1, or labels carry no signal; got 0\.5 \+ 0\.5$"),
        ((0.6, 0.7), r"^rho01 \+ rho10 must be below 1.*; got 0\.6 \+ 0\.7$"),
        ((0.1, 0.1, ((1, 2), (3, 4))), r"^covariance must be a finite symmetric 2 x 2 matrix; got"),
        ((0.1, 0.1, ((1, 0, 0), (0, 1, 0))), r"^covariance must be a finite symmetric 2 x 2 matrix; got"),
        ((0.1, 0.1, ((np.nan, 0), (0, 1))), r"^covariance must be a finite symmetric 2 x 2 matrix; got"),
        ((0.1, 0.1, 1.0), r"^covariance must be a finite symmetric 2 x 2 matrix; got 1\.0$"),
        ((0.1, 0.1, ((1, 2), (2, 1))), r"^covariance must not have a negative eigenvalue; got"),
        ((0.1, 0.1, "none"), r"^covariance must be .*; got 'none'$"),
        ((0.1, 0.1, ((1, 0), (0,))), r"^covariance must be .*; got"),
    ],
)
def test_rates_without_meaning_are_refused_in_one_line(arguments, message):
    with pytest.raises(NoiseRateError, match=message) as caught:
        NoiseRates(*arguments)
    assert "\n" not in str(caught.value)


def test_a_covariance_is_kept_as_plain_tuples():
    assert NoiseRates(0.1, 0.1, np.diag([0.01, 0.04])).covariance == ((0.01, 0.0), (0.0, 0.04))


@given(RATES, st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1, exclude_max=True))))
def test_observe_flips_a_label_exactly_where_its_uniform_is_below_its_rate(rates, draws):
    rho01, rho10 = rates
    expected = [1 - label if uniform < (rho01 if label else rho10) else label for label, uniform in draws]
    labels = np.array([label for label, _ in draws], np.int8)
    observed = NoiseRates(rho01, rho10).observe(labels, np.array([uniform for _, uniform in draws]))
    assert observed.dtype == np.int8
    assert observed.tolist() == expected


def test_observe_without_noise_changes_nothing_even_at_uniform_zero():
    labels = np.array([0, 1, 0, 1])
    assert NoiseRates(0, 0).observe(labels, np.zeros(4)).tolist() == labels.tolist()


def test_observe_flips_at_the_wanted_rates():
    size = 200_000
    rates = NoiseRates(0.3, 0.1)
    uniforms = np.random.default_rng(0).random(size)
    for label, rate in ((1, rates.rho01), (0, rates.rho10)):
        flipped = (rates.observe(np.full(size, label), uniforms) != label).mean()
        assert abs(flipped - rate) < 4 * np.sqrt(rate * (1 - rate) / size)


@pytest.mark.parametrize("covariance", [[[1e-8, 9e-9], [0, 1e-8]], [[-1e-13, 0], [0, 1e-8]]])
def test_small_covariances_are_checked_by_their_own_scale(covariance):
    with pytest.raises(NoiseRateError, match="covariance must"):
        NoiseRates(0.2, 0.1, covariance)


@pytest.mark.parametrize("rates", [(0.5, 0.41), (0.95, 0.0), (0.0, 0.999)])
def test_rates_that_leave_less_than_a_tenth_of_the_signal_warn_in_one_line(rates):
    with pytest.warns(
        NoiseRateWarning, match=r"^kappa = 1 - rho01 - rho10 is 0\.\d+: labels carry so little"
    ) as caught:
        NoiseRates(*rates)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert "\n" not in str(caught[0].message)


@given(RATES)
def test_rates_that_leave_a_tenth_of_the_signal_do_not_warn(rates):
    NoiseRates(*rates)  # a warning would be an error here


@given(RATES, st.floats(1e-6, 0.1), st.floats(1e-6, 0.1), st.floats(0.5, 0.999))
def test_an_interval_is_a_normal_one_cut_to_the_unit_interval(rates, error01, error10, confidence):
    interval = NoiseRates(*rates, covariance=((error01**2, 0), (0, error10**2))).interval(confidence)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    for name, rate, error in zip(("rho01", "rho10"), rates, (error01, error10), strict=True):
        assert interval[name] == pytest.approx((max(rate - z * error, 0), min(rate + z * error, 1)), abs=1e-12)


def test_the_default_interval_is_of_95_per_cent():
    rates = NoiseRates(0.3, 0.2, covariance=((0.01, 0.002), (0.002, 0.0004)))
    assert rates.interval() == rates.interval(0.95)
    assert rates.interval()["rho01"] == pytest.approx((0.3 - 0.19599640, 0.3 + 0.19599640))


@given(RATES)
def test_the_interval_of_a_known_rate_is_the_rate(rates):
    assert NoiseRates(*rates).interval() == {"rho01": (rates[0],) * 2, "rho10": (rates[1],) * 2}


@pytest.mark.parametrize("confidence", [0, 1, 95, -0.5, math.nan, "0.95", None, True, float])
def test_a_confidence_outside_of_0_and_1_is_refused(confidence):
    message = r"^confidence must be a finite number above 0 and below 1; got "
    check_refusal(lambda: NoiseRates(0.1, 0.1).interval(confidence), ParameterError, message)


HERE, ELSEWHERE = 17, 18
"""Fingerprints of two logs."""


@pytest.mark.parametrize("share", [0, 0.25, 0.5, 0.75, 1])
def test_the_covariance_beside_noise_is_less_what_an_audit_shares_with_the_log(share):
    audit = AuditOrigin(HERE, share)
    known, rates = (NoiseRates(0.1, 0.1, covariance, audit) for covariance in (None, ((4, 1), (1, 2))))
    found = rates.covariance_beside_noise(HERE)
    # Never below 0: a covariance takes nothing off.
    left = {0: 1, 0.25: 0.5}.get(share, 0)
    assert found.tolist() == [[4 * left, left], [left, 2 * left]]
    # An audit of another log shares nothing with this one, nor with labels of which nobody says whose they are.
    for log in (ELSEWHERE, None):
        assert rates.covariance_beside_noise(log).tolist() == [[4, 1], [1, 2]]
    for log in (HERE, ELSEWHERE, None):
        assert known.covariance_beside_noise(log) is None


@pytest.mark.parametrize("log", [HERE, None])
def test_rates_that_no_audit_of_the_log_gave_keep_their_covariance_beside_noise(log):
    # Diagnostics are for people to read: they change nothing.
    for facts in ({}, {"audited_share": 0.5, "log": HERE}):
        rates = NoiseRates(0.1, 0.1, ((4, 1), (1, 2)), diagnostics=facts)
        assert rates.covariance_beside_noise(log).tolist() == [[4.0, 1.0], [1.0, 2.0]]
        assert rates.covariance == ((4.0, 1.0), (1.0, 2.0))


def test_rates_are_equal_if_their_audit_is_too_whatever_their_diagnostics():
    rates = NoiseRates(0.1, 0.1, ((4, 1), (1, 2)), AuditOrigin(HERE, 0.5))
    assert rates == NoiseRates(0.1, 0.1, ((4, 1), (1, 2)), AuditOrigin(HERE, 0.5), {"method": "audit"})
    assert rates != NoiseRates(0.1, 0.1, ((4, 1), (1, 2)), AuditOrigin(ELSEWHERE, 0.5))
    assert rates != NoiseRates(0.1, 0.1, ((4, 1), (1, 2)))


@pytest.mark.parametrize("audit", [{"method": "audit"}, 0.5, "log"], ids=["dict", "number", "text"])
def test_an_audit_of_another_kind_is_refused(audit):
    check_refusal(
        lambda: NoiseRates(0.1, 0.1, ((4, 1), (1, 2)), audit), NoiseRateError, "^audit must be an AuditOrigin; got "
    )


WANTED = "must be integers from 0 to 2, one a position in the order of the log's ids"
GROUPS = (NoiseRates(0.1, 0.2), NoiseRates(0.3, 0.0), NoiseRates(0.0, 0.4))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=20))
def test_a_pair_is_of_its_users_or_its_items_group(pairs):
    users, items = np.array(pairs, int).reshape(-1, 2).T
    of_user, of_item = [0, 2, 1, 2], np.array([1, 1, 0, 2, 0], np.uint8)
    by_user = GroupedNoiseRates(GROUPS, user_groups=of_user).group_of(users, items)
    by_item = GroupedNoiseRates(GROUPS, item_groups=of_item).group_of(users, items)
    assert by_user.tolist() == [of_user[user] for user, _ in pairs]
    assert by_item.tolist() == [int(of_item[item]) for _, item in pairs]


def test_the_covariance_of_groups_is_one_block_a_group():
    covariances = (((4, 1), (1, 2)), ((9, 3), (3, 5)))
    rates = GroupedNoiseRates([NoiseRates(0.1, 0.1, one) for one in covariances], user_groups=[0, 1])
    whole = [[4, 1, 0, 0], [1, 2, 0, 0], [0, 0, 9, 3], [0, 0, 3, 5]]
    for log in (HERE, None):
        assert rates.covariance_beside_noise(log).tolist() == whole
        assert GroupedNoiseRates(GROUPS, user_groups=[0]).covariance_beside_noise(log) is None


def test_each_groups_block_goes_by_its_own_audit():
    covariances, audits = (((4, 1), (1, 2)), ((9, 3), (3, 5))), (AuditOrigin(HERE, 0.25), AuditOrigin(ELSEWHERE, 1))
    each = [NoiseRates(0.1, 0.1, one, audit) for one, audit in zip(covariances, audits, strict=True)]
    rates = GroupedNoiseRates(each, user_groups=[0, 1])
    assert rates.covariance_beside_noise(HERE).tolist() == [[2, 0.5, 0, 0], [0.5, 1, 0, 0], [0, 0, 9, 3], [0, 0, 3, 5]]
    elsewhere = [[4, 1, 0, 0], [1, 2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert rates.covariance_beside_noise(ELSEWHERE).tolist() == elsewhere
    assert rates.covariance_beside_noise(None).tolist() == [[4, 1, 0, 0], [1, 2, 0, 0], [0, 0, 9, 3], [0, 0, 3, 5]]


def test_groups_are_for_one_size_of_the_grid():
    by_user, by_item = (GroupedNoiseRates(GROUPS, **{name: [0, 1, 2]}) for name in ("user_groups", "item_groups"))
    by_user.check_grid(3, 8)
    by_item.check_grid(8, 3)
    check_refusal(
        lambda: by_user.check_grid(2_000, 3),
        NoiseRateError,
        r"^user_groups must name the group of all 2,000 users; got 3$",
    )
    check_refusal(
        lambda: by_item.check_grid(3, 4), NoiseRateError, r"^item_groups must name the group of all 4 items; got 3$"
    )


NO_RATES = r"^grouped noise rates need one NoiseRates a group$"


@pytest.mark.parametrize(
    ("rates", "groups", "message"),
    [
        ((), {"user_groups": [0]}, NO_RATES),
        ((0.1, 0.2), {"user_groups": [0]}, NO_RATES),
        (((0.1, 0.2),), {"user_groups": [0]}, NO_RATES),
        ((NoiseRates,), {"user_groups": [0]}, NO_RATES),
        ("ab", {"user_groups": [0]}, NO_RATES),
        (NoiseRates(0.1, 0.2), {"user_groups": [0]}, NO_RATES),
        (None, {"user_groups": [0]}, NO_RATES),
        (NoiseRates, {"user_groups": [0]}, NO_RATES),
        (GROUPS, {}, r"^grouped noise rates need user_groups or item_groups, one of the two$"),
        (GROUPS, {"user_groups": [0], "item_groups": [0]}, r"^grouped noise rates need user_groups or item_groups"),
        (
            GROUPS,
            {"user_groups": [0, 3]},
            rf"^user_groups {WANTED}; got 0 to 3, shape \(2,\)$",
        ),
        (
            GROUPS,
            {"item_groups": [-1]},
            rf"^item_groups {WANTED}; got -1 to -1, shape \(1,\)$",
        ),
        (GROUPS, {"user_groups": [0.0]}, rf"^user_groups {WANTED}; got float64"),
        (GROUPS, {"user_groups": ["a"]}, rf"^user_groups {WANTED}; got <U1"),
        (GROUPS, {"user_groups": [True]}, rf"^user_groups {WANTED}; got bool"),
        (
            GROUPS,
            {"user_groups": [[0]]},
            rf"^user_groups {WANTED}; got 0 to 0, shape \(1, 1\)$",
        ),
        (GROUPS, {"user_groups": 0}, rf"^user_groups {WANTED}; "),
        (GROUPS, {"user_groups": [[0], [0, 1]]}, r"^user_groups must be an array; got a list"),
        (
            (NoiseRates(0.1, 0.1), NoiseRates(0.1, 0.1, ((1, 0), (0, 1)))),
            {"user_groups": [0, 1]},
            r"^either all groups' rates have a covariance or none has$",
        ),
    ],
)
def test_groups_without_meaning_are_refused_in_one_line(rates, groups, message):
    check_refusal(lambda: GroupedNoiseRates(rates, **groups), NoiseRateError, message)


@given(RATES.filter(lambda rates: sum(rates) < 0.8999))
def test_a_region_has_the_corners_of_its_rectangle(rates):
    corners = NoiseRegion(*rates).corners
    assert {(corner.rho01, corner.rho10) for corner in corners} == {
        (a, b) for a in (0, rates[0]) for b in (0, rates[1])
    }
    assert len(corners) == len({(corner.rho01, corner.rho10) for corner in corners})


@given(st.floats(0.01, 0.89), st.floats(0.01, 0.89))
def test_a_region_that_leaves_no_signal_is_cut_where_a_tenth_is_left(most01, most10):
    assume(most01 + most10 > 0.9001)
    region = NoiseRegion(most01, most10)
    assert (region.rho01_most, region.rho10_most) == (most01, most10)
    expected = [(0, 0), (0, most10), (most01, 0), (0.9 - most10, most10), (most01, 0.9 - most01)]
    found = [(corner.rho01, corner.rho10) for corner in region.corners]
    assert len(found) == 5
    for one, other in zip(sorted(found), sorted(expected), strict=True):
        assert one == pytest.approx(other, abs=2e-9)


def test_no_rate_of_a_region_leaves_less_than_a_tenth():
    region = NoiseRegion(0.95, 0.99)
    assert (region.rho01_most, region.rho10_most) == pytest.approx((0.9, 0.9), abs=2e-9)
    found = sorted((corner.rho01, corner.rho10) for corner in region.corners)
    assert np.array(found) == pytest.approx(np.array([(0, 0), (0, 0.9), (0.9, 0)]), abs=2e-9)


MOST = st.floats(0, 1, exclude_max=True)


@given(MOST, MOST)
def test_a_lattice_lies_all_over_its_region(most01, most10):
    region = NoiseRegion(most01, most10)
    lattice = [(point.rho01, point.rho10) for point in region.lattice]  # a warning of kappa would be an error
    assert {(corner.rho01, corner.rho10) for corner in region.corners} <= set(lattice)
    assert all(0 <= a <= region.rho01_most and 0 <= b <= region.rho10_most for a, b in lattice)
    expected = [
        (region.rho01_most * i / 6, region.rho10_most * j / 6)
        for i in range(7)
        for j in range(7)
        if region.rho01_most * i / 6 + region.rho10_most * j / 6 < 0.9 - 1e-6
    ]
    for a, b in expected:
        assert any(abs(a - c) + abs(b - d) < 1e-12 for c, d in lattice)


@pytest.mark.parametrize(
    ("most", "count"),
    [
        ((0.3, 0.2), 49),
        ((0, 0), 1),
        ((0, 0.3), 7),
        ((0.9, 0), 7),
    ],
)
def test_a_lattice_has_each_point_once(most, count):
    lattice = NoiseRegion(*most).lattice
    assert len(lattice) == len(set(lattice)) == count


@given(MOST, MOST, st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_corrected_shares_inside_a_region_lie_between_those_of_its_corners(most01, most10, share01, share10, positive):
    """What the corners are for: a correction of any rates of the region is no further out than theirs."""

    def corrected(of):
        return (positive - of.rho10) / of.kappa

    region = NoiseRegion(most01, most10)
    point = region.rho01_most * share01, region.rho10_most * share10
    assume(sum(point) <= 0.9 - 1e-8)
    at_corners = [corrected(corner) for corner in region.corners]
    assert min(at_corners) - 1e-9 <= corrected(NoiseRates(*point)) <= max(at_corners) + 1e-9


@pytest.mark.parametrize(
    ("most", "message"),
    [
        ((-0.1, 0.1), r"^rho01_most must be a number of at least 0 and below 1; got -0\.1$"),
        ((0.1, "0.2"), r"^rho10_most must be a number of at least 0 and below 1; got '0\.2'$"),
        ((None, 0.2), r"^rho01_most must be .*; got None$"),
        ((0.1, math.nan), r"^rho10_most must be .*; got nan$"),
        ((1, 0.4), r"^rho01_most must be .*; got 1$"),
        ((0.4, 1.5), r"^rho10_most must be .*; got 1\.5$"),
        ((NoiseRates, 0.1), r"^rho01_most must be .*; got <class 'verirec\.losses\.noise_rates\.NoiseRates'>$"),
    ],
)
def test_a_region_without_meaning_is_refused(most, message):
    check_refusal(lambda: NoiseRegion(*most), NoiseRateError, message)


@given(RATES)
def test_observe_and_the_plain_chances_agree(rates):
    """At uniforms on a fine grid a label flips as often as P(r | r*) says."""
    uniforms = (np.arange(10_000) + 0.5) / 10_000
    for label in (0, 1):
        seen = NoiseRates(*rates).observe(np.full(10_000, label), uniforms).mean()
        assert seen == pytest.approx(chance(1, label, *rates), abs=1e-4)


def test_corners_and_lattice_are_made_once_and_change_nothing_of_a_region():
    region = NoiseRegion(0.3, 0.2)
    assert region.corners is region.corners
    assert region.lattice is region.lattice
    assert region == NoiseRegion(0.3, 0.2)
    assert hash(region) == hash(NoiseRegion(0.3, 0.2))


def test_rates_are_a_small_table_in_a_notebook():
    known = NoiseRates(0.2, 0.1)._repr_html_()
    assert "known" in known
    assert "<td>0.2</td>" in known
    facts = {"method": "audit, <joint>", "audited": 300}
    estimated = NoiseRates(0.2, 0.1, ((0.0004, 0), (0, 0.0001)), diagnostics=facts)._repr_html_()
    assert "<td>0.2 [0.1608, 0.2392]</td>" in estimated
    assert "audit, &lt;joint&gt;" in estimated
