"""Pictures of traces."""

from __future__ import annotations

import math
import re
from itertools import combinations

import numpy as np
import pytest
from matplotlib import image
from matplotlib.figure import Figure

import dualopt.methods
from dualopt.runs import plotting
from dualopt.runs.plotting import LABELS, convergence, dashes, save, single_run, style, styles
from dualopt.runs.trace import Trace
from dualopt.spec.discover import discover


def trace(**columns):
    """Return a trace with rounds counted from 0."""
    length = len(next(iter(columns.values())))
    return Trace(columns={"round": range(length), **columns}, status="max_rounds", theta=None)


def drawn(axes):
    """Return what the lines of some axes show, by label."""
    return {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines}


def test_curves_show_the_columns_on_a_logarithmic_axis():
    figure = convergence({"a": trace(energy=[3.0, 2.0, 1.0]), "b": trace(energy=[3.0, 1.0])}, y="energy", title="T")
    (axes,) = figure.axes
    assert drawn(axes) == {"a": ([0, 1, 2], [3, 2, 1]), "b": ([0, 1], [3, 1])}
    assert axes.get_yscale() == "log"
    assert axes.get_xscale() == "linear"
    assert "rounds" in axes.get_xlabel()
    assert "energy" in axes.get_ylabel()
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    assert figure.get_suptitle() == "T"


def test_numbers_without_a_logarithm_are_left_out_and_the_rest_is_joined(tmp_path):
    values = [math.inf, 1.0, math.nan, 0.1, 0.0, -1e-17, 0.01, 1.7e308, 5e-324]
    figure = convergence({"a": trace(certified_error=values)})
    assert drawn(figure.axes[0]) == {"a": ([1, 3, 6], [1.0, 0.1, 0.01])}
    save(figure, tmp_path / "a.png")


def test_a_notebook_shows_the_figure():
    for figure in (convergence({"a": trace(energy=[1.0, 0.5])}, y="energy"), single_run(trace(certified_error=[1.0]))):
        assert figure._repr_png_().startswith(b"\x89PNG")


def test_labels_that_begin_with_an_underscore_are_in_the_legend():
    figure = convergence({"_": trace(energy=[1.0, 0.5])}, y="energy")
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [" _"]


def test_nothing_to_draw_is_no_error(tmp_path):
    figure = convergence({"a": trace(certified_error=[math.inf, math.nan])})
    assert drawn(figure.axes[0]) == {"a": ([], [])}
    save(figure, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 0


def test_several_columns_give_panels_that_share_the_vertical_axis():
    t = trace(energy=[2.0, 1.0], gradients=[0.0, 7.0], floats_up=[0.0, 5000.0])
    figure = convergence({"a": t}, x=("round", "gradients", "floats_up"), y="energy")
    assert [drawn(axes)["a"][0] for axes in figure.axes] == [[0, 1], [0, 7], [0, 5000]]
    assert len({axes.get_ylim() for axes in figure.axes}) == 1


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="traces must hold at least one"):
        convergence({})
    with pytest.raises(ValueError, match="column 'error' is not in trace 'a', which has round, energy"):
        convergence({"a": trace(energy=[1.0])}, y="error")


def test_a_single_run_shows_the_error_below_its_bound():
    figure = single_run(trace(certified_error=[0.2, 0.1], error=[0.1, 0.05]))
    assert drawn(figure.axes[0]) == {"certified": ([0, 1], [0.2, 0.1]), "error": ([0, 1], [0.1, 0.05])}
    looks = {(line.get_color(), line.get_marker()) for line in figure.axes[0].lines}
    assert len(looks) == 2
    without = single_run(trace(certified_error=[0.2, 0.1]))
    assert list(drawn(without.axes[0])) == ["certified"]


def test_a_style_belongs_to_a_name_and_figures_agree():
    assert style("dualfl") == ("#0072B2", "o")  # written down: changing it would change every figure
    figures = [convergence({name: trace(energy=[2.0, 1.0]) for name in names}, y="energy") for names in ("ab", "a")]
    looks = [(f.axes[0].lines[0].get_color(), f.axes[0].lines[0].get_marker()) for f in figures]
    assert looks[0] == looks[1] == style("a")


METHODS = discover(dualopt.methods)


def test_methods_have_pairs_of_their_own_whoever_shares_the_figure():
    known = {name: style(name) for name in METHODS}
    assert len(set(known.values())) == len(known)
    written_down = {"a-fedpd": ("#56B4E9", "P"), "feddyn": ("#009E73", "^"), "fedavg": ("#000000", "X")}
    written_down |= {"fedpd": ("#D55E00", "^"), "scaffold": ("#CC79A7", "v"), "scaffnew": ("#56B4E9", "s")}
    assert {name: known[name] for name in written_down} == written_down
    assert {name: styles([name])[name] for name in METHODS} == known
    compared = ("dualfl", "fedpd", "feddr", "feddualavg", "feddyn", "scaffnew", "apda-inexact")
    assert len({known[name][0] for name in compared}) == len(compared)  # the eighth, 5GCS, shares a colour
    strangers = [f"stranger {k}" for k in range(plotting.STYLES - len(METHODS))]
    found = styles([*strangers, *METHODS])
    assert {name: found[name] for name in METHODS} == known
    assert len(set(found.values())) == len(found)
    assert style("feddyn:alpha=0.1") == style("feddyn") != style("feddyn, alpha=0.1")


def test_methods_that_share_a_colour_differ_in_marker_and_dashes():
    for one, other in combinations(METHODS, 2):
        (colour, marker), (colour2, marker2) = style(one), style(other)
        if colour == colour2:
            assert marker != marker2
            assert dashes(colour, marker) != dashes(colour2, marker2)


def test_methods_of_one_colour_have_two_where_colours_are_left():
    """fedavg and fivegcs are both black; whoever comes first, fedavg keeps its own style and fivegcs its dashes."""
    found = [styles(names) for names in (["fedavg", "fivegcs"], ["fivegcs", "fedavg"])]
    assert found[0] == found[1]
    assert found[0]["fedavg"] == style("fedavg")
    assert found[0]["fivegcs"][0] != style("fivegcs")[0]
    assert dashes(*found[0]["fivegcs"]) == dashes(*style("fivegcs")) != "-"


def test_new_methods_get_free_pairs_and_change_no_other(monkeypatch):
    before = {name: style(name) for name in METHODS}
    added = [f"new-{k}" for k in range(plotting.STYLES - len(METHODS))]
    monkeypatch.setattr(plotting, "discover", lambda package: sorted([*METHODS, *added]))
    plotting._style_numbers.cache_clear()
    try:
        assert {name: style(name) for name in METHODS} == before
        assert len({style(name) for name in [*METHODS, *added]}) == plotting.STYLES
        assert style("new-3:rho=1") == style("new-3")
    finally:
        plotting._style_numbers.cache_clear()


def test_styles_of_one_figure_differ_in_colour_as_long_as_there_are_colours():
    names = [f"dualfl:rho={k}" for k in range(7)]
    found = styles(names)
    assert len({colour for colour, _ in found.values()}) == 7
    assert found[names[0]] == style(names[0])
    many = styles(str(k) for k in range(60))  # more than there are pairs: repeated, not refused
    assert len(set(many.values())) == 56


def test_markers_of_curves_that_coincide_stand_side_by_side():
    values = list(np.logspace(0, -3, 40))
    figure = convergence({"a": trace(energy=values), "b": trace(energy=values)}, y="energy")
    first, second = (line.get_markevery() for line in figure.axes[0].lines)
    assert first != second


def test_save_replaces_a_file_only_when_the_new_one_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    save(convergence({"a": trace(energy=[2.0, 1.0])}, y="energy"), path)
    height, width, _ = image.imread(path).shape
    assert (width, height) == (round(6.4 * 150), round(4.4 * 150))
    before = path.read_bytes()

    def fail(self, file, **_):
        file.write(b"half a picture")
        raise OSError("the disk is full")

    monkeypatch.setattr(Figure, "savefig", fail)
    with pytest.raises(OSError, match="the disk is full"):
        save(Figure(), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["a.png"]


def test_the_suffix_names_the_format(tmp_path):
    save(Figure(), tmp_path / "a.svg")
    assert "<svg" in (tmp_path / "a.svg").read_text()
    save(convergence({"a": trace(energy=[2.0, 1.0])}, y="energy"), tmp_path / "a.pdf")
    kinds = set(re.findall(rb"/Subtype /(Type3|TrueType|CIDFontType2)", (tmp_path / "a.pdf").read_bytes()))
    assert kinds == {b"CIDFontType2"}  # TrueType; journals refuse Type 3


def test_no_global_figure_is_left_behind():
    from matplotlib import pyplot

    convergence({"a": trace(energy=[2.0, 1.0])}, y="energy")
    assert pyplot.get_fignums() == []


def test_accuracies_are_drawn_as_what_is_missing():
    trace = Trace(columns={"round": [0, 1], "test_accuracy": [0.5, 0.9]}, status="max_rounds", theta=None)
    (axes,) = convergence({"feddyn": trace}, y="test_accuracy").axes
    np.testing.assert_allclose(np.asarray(axes.lines[0].get_ydata()), [0.5, 0.1])
    assert axes.get_ylabel() == "share of the test data that is mistaken"


def test_a_single_run_draws_what_there_is():
    """A gradient at the end alone is no curve."""
    never, once = [np.inf, np.inf, np.inf], [np.nan, np.nan, 0.1]
    energy, gradients = [3.0, 2.0, 1.0], [0.3, 0.2, 0.1]

    def drawn(**columns):
        return single_run(trace(certified_error=never, energy=energy, **columns)).axes[0].get_ylabel()

    assert drawn(gradient_norm=gradients) == LABELS["gradient_norm"]
    assert drawn(gradient_norm=once) == LABELS["energy"]
    assert drawn(gradient_norm=gradients, test_accuracy=[0.1, 0.5, 0.9]) == LABELS["test_accuracy"]
