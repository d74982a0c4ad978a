"""Pictures of traces."""

from __future__ import annotations

import io
import math
import re
from itertools import combinations

import numpy as np
import pytest
from matplotlib import image, rc_context
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text

import dualopt.methods
from dualopt.runs import plotting
from dualopt.runs.plotting import LABELS, convergence, palette, proper_name, save, single_run, style, styles
from dualopt.runs.trace import Trace
from dualopt.spec.discover import discover


def trace(**columns):
    """Return a trace with rounds counted from 0."""
    length = len(next(iter(columns.values())))
    return Trace(columns={"round": range(length), **columns}, status="max_rounds", theta=None)


def drawn(axes):
    """Return what the lines of some axes show, by label."""
    return {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines}


def names(figure):
    """Return the names of the curves of a picture that is drawn: at their ends, or else in a legend."""
    figure.draw_without_rendering()
    ends = [text.get_text() for axes in figure.axes for text in axes.texts if isinstance(text, Annotation)]
    return ends + [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_curves_show_the_columns_on_a_logarithmic_axis():
    figure = convergence({"a": trace(energy=[3.0, 2.0, 1.0]), "b": trace(energy=[3.0, 1.0])}, y="energy", title="T")
    (axes,) = figure.axes
    assert drawn(axes) == {"a": ([0, 1, 2], [3, 2, 1]), "b": ([0, 1], [3, 1])}
    assert axes.get_yscale() == "log"
    assert axes.get_xscale() == "linear"
    assert "rounds" in axes.get_xlabel()
    assert "energy" in axes.get_ylabel()
    assert names(figure) == ["a", "b"]
    assert figure.get_suptitle() == "T"


def test_numbers_without_a_logarithm_are_left_out_and_the_rest_is_joined(tmp_path):
    values = [math.inf, 1.0, math.nan, 0.1, 0.0, -1e-17, 0.01, 1.7e308, 5e-324]
    figure = convergence({"a": trace(certified_error=values)})
    assert drawn(figure.axes[0]) == {"a": ([1, 3, 6], [1.0, 0.1, 0.01])}
    save(figure, tmp_path / "a.png")


def test_a_notebook_shows_the_figure():
    for figure in (convergence({"a": trace(energy=[1.0, 0.5])}, y="energy"), single_run(trace(certified_error=[1.0]))):
        assert isinstance(figure, plotting.Picture)
        assert figure._repr_png_().startswith(b"\x89PNG")


def test_labels_that_begin_with_an_underscore_are_in_the_legend():
    figure = convergence({"_": trace(energy=[1.0, 0.5])}, y="energy")
    assert names(figure) == ["_"]


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
    assert drawn(figure.axes[0]) == {"certified bound": ([0, 1], [0.2, 0.1]), "error": ([0, 1], [0.1, 0.05])}
    looks = {(line.get_color(), line.get_marker()) for line in figure.axes[0].lines}
    assert len(looks) == 2
    without = single_run(trace(certified_error=[0.2, 0.1]))
    assert list(drawn(without.axes[0])) == ["certified bound"]


METHODS = discover(dualopt.methods)


def test_a_method_has_one_style_everywhere():
    assert style("dualfl") == ("#0072B2", "o", "-")  # written down: changing it would change every figure
    assert style("fedavg") == ("#000000", "P", "-")
    assert style("fivegcs") == ("#882255", "<", (0, (3, 1.2)))
    known = {name: style(name) for name in METHODS}
    assert {name: styles([name])[name] for name in METHODS} == known
    strangers = [f"stranger {k}" for k in range(plotting.STYLES - len(METHODS))]
    found = styles([*strangers, *METHODS])
    assert {name: found[name] for name in METHODS} == known
    assert len(set(found.values())) == len(found) == plotting.STYLES
    assert style("feddyn:alpha=0.1") == style("FedDyn") == style("feddyn")
    with pytest.raises(ValueError, match="name must be that of a method, not 'feddyn, alpha="):
        style("feddyn, alpha=0.1")


# What eyes without green or red receptors see, and what is left in grey: linear RGB, Machado, Oliveira and Fernandes
# (2009), severity 1, and the luminance of ITU-R BT.709.
EYES = {
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "usual": np.eye(3),
    "grey": [[0.2126, 0.7152, 0.0722]] * 3,
}
NEAR = 18.0  # CIE76: a just noticeable difference is about 2.3


def seen(colour, eyes):
    """Return a colour in CIELAB, for the white of D65."""
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
    ratios = (to_xyz @ np.clip(EYES[eyes] @ linear, 0.0, 1.0)) / [0.95047, 1.0, 1.08883]
    X, Y, Z = np.where(ratios > (6 / 29) ** 3, np.cbrt(ratios), ratios / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * Y - 16, 500 * (X - Y), 200 * (Y - Z)])


def apart(one, other, eyes):
    return np.linalg.norm(seen(one, eyes) - seen(other, eyes)) >= NEAR


def test_the_simulated_eyes_are_right():
    """Red and green of equal luminance differ for usual eyes, and hardly for those without green receptors."""
    assert np.allclose(seen("#FFFFFF", "deuteranopia"), [100, 0, 0], atol=0.1)
    assert np.linalg.norm(seen("#D08000", "usual") - seen("#80A000", "usual")) > 50
    assert not apart("#C07030", "#8A8A30", "deuteranopia")


@pytest.mark.parametrize("eyes", ["usual", "deuteranopia", "protanopia"])
def test_two_methods_differ_in_two_of_colour_marker_and_dashes(eyes):
    for one, other in combinations(map(style, METHODS), 2):
        differ = apart(one.color, other.color, eyes), one.marker != other.marker, one.linestyle != other.linestyle
        assert sum(differ) >= 2, (one, other)


def test_methods_differ_without_any_colour():
    found = [style(name) for name in METHODS]
    assert len({(one.marker, one.linestyle) for one in found}) == len(found)


def test_lines_can_be_seen_on_white_paper():
    assert all(seen(colour, "grey")[0] < 76 for colour in plotting.COLOURS)


TOGETHER = (
    "dualfl optimized-dualfl feddyn fedpd feddr feddualavg scaffnew apda-inexact fivegcs distributed-lbfgs "
    "distributed-newton-cg anderson-fedsplit",  # fig1a_methods
    "dualfl optimized-dualfl scaffnew fivegcs apda-inexact fedsplit fedpd dual-ascent fedavg scaffold",  # table1
    "fedsplit feddr feddyn sampled-dualfl",  # scales
    "fedadmm feddyn a-fedpd fedavg",  # afedpd_residuals
    "dualfl optimized-dualfl fedavg fedprox scaffold feddyn fedpd fedsplit scaffnew fedadmm anderson-fedsplit feddr",
)


@pytest.mark.parametrize("together", TOGETHER)
def test_methods_that_are_drawn_together_differ_in_colour(together):
    found = [style(name).color for name in together.split()]
    assert len(set(found)) == len(found)


def test_names_are_those_of_papers():
    assert [proper_name(name) for name in ("fedsplit", "fivegcs", "scaffold", "mine")] == [
        *("FedSplit", "5GCS", "SCAFFOLD", "mine")
    ]
    assert len({proper_name(name) for name in METHODS}) == len(METHODS)
    t = trace(energy=[2.0, 1.0])
    figure = convergence({"fedsplit": t, "dualfl:rho=0": t, "mine": t}, y="energy")
    assert set(names(figure)) == {"FedSplit", "DualFL, rho = 0", "mine"}


def test_new_methods_get_free_styles_and_change_no_other(monkeypatch):
    before = {name: style(name) for name in METHODS}
    added = {f"new-{k}": type(f"New{k}", (), {}) for k in range(plotting.STYLES - len(METHODS))}
    module = vars(palette)
    monkeypatch.setitem(module, "names", lambda kind: {**METHODS, **added})
    caches = module["_numbers"], module["_slugs"]
    for cached in caches:
        cached.cache_clear()
    try:
        assert {name: style(name) for name in METHODS} == before
        assert len({style(name) for name in [*METHODS, *added]}) == plotting.STYLES
        assert style("new-3:rho=1") == style("new-3")
        assert proper_name("new-3") == "New3"
    finally:
        for cached in caches:
            cached.cache_clear()


def test_styles_of_one_figure_differ_in_colour_as_long_as_there_are_colours():
    names = [f"dualfl:rho={k}" for k in range(12)]
    found = styles(names)
    assert len({one.color for one in found.values()}) == 12
    assert found[names[0]] == style("dualfl")
    many = styles(str(k) for k in range(60))  # more than there are styles: repeated, not refused
    assert len(set(many.values())) == plotting.STYLES


def test_what_only_names_a_method_does_not_take_its_style():
    found = styles(["again", "DualFL"], {"again": "dualfl"})
    assert found["DualFL"] == style("dualfl") != found["again"]


def test_a_label_has_the_style_of_the_method_of_its_trace():
    own = Trace(columns={"round": [0, 1], "energy": [2.0, 1.0]}, status="max_rounds", theta=None)
    split = Trace(columns=own.columns, status="max_rounds", theta=None, parameters={"algorithm": "FedSplit"})
    figure = convergence({"plain": split, "other": own, "again": split}, y="energy")
    looks = [(line.get_color(), line.get_marker()) for line in figure.axes[0].lines]
    assert looks[0] == style("fedsplit")[:2]
    assert len(set(looks)) == 3


def test_markers_of_curves_that_coincide_stand_side_by_side():
    values = list(np.logspace(0, -3, 40))
    figure = convergence({"a": trace(energy=values), "b": trace(energy=values)}, y="energy")
    first, second = (line.get_markevery() for line in figure.axes[0].lines)
    assert first != second


def falling(rates, rounds=40):
    return {
        name: trace(error=list(np.exp(-rate * np.arange(rounds)))) for name, rate in zip(METHODS, rates, strict=False)
    }


@pytest.mark.parametrize("width", ["column", "page"])
def test_names_at_the_ends_of_curves_do_not_overlap_and_have_at_least_7_points(width):
    figure = convergence(falling([0.1, 0.1, 0.11, 0.3, 0.31, 0.5, 0.02, 0.021]), y="error", width=width)
    figure.draw_without_rendering()
    texts = [text for text in figure.axes[0].texts if isinstance(text, Annotation)]
    ends = {str(line.get_label()): np.asarray(line.get_ydata(), dtype=float)[-1] for line in figure.axes[0].lines}
    lowest_first = [text.get_text() for text in sorted(texts, key=lambda text: text.get_position()[1])]
    assert [ends[name] for name in lowest_first] == sorted(ends.values())
    assert not figure.legends
    boxes = [Text.get_window_extent(text) for text in texts]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 + 1 for box in boxes)
    assert all(box.x0 > figure.axes[0].bbox.x1 for box in boxes)
    shown = [t for axes in figure.axes for t in (*axes.get_xticklabels(), *axes.get_yticklabels(), axes.xaxis.label)]
    assert min(float(text.get_fontsize()) for text in (*texts, *shown)) >= 7


def test_there_is_a_legend_where_names_have_no_room():
    crowded = falling([0.1 + 0.001 * k for k in range(30)])
    figure = convergence(crowded, y="error", width="column")
    assert len(names(figure)) == 30
    (legend,) = figure.legends
    assert legend.get_window_extent().width <= figure.bbox.width
    assert not [text for text in figure.axes[0].texts if isinstance(text, Annotation)]


def test_the_name_of_a_curve_that_ends_early_is_beside_its_end():
    long, short = falling([0.01, 0.3]).values()
    early = Trace(columns={name: column[:12] for name, column in short.columns.items()}, status="converged", theta=None)
    figure = convergence({"fedavg": long, "fedsplit": early}, y="error")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    split = next(text for text in axes.texts if text.get_text() == "FedSplit")
    box = Text.get_window_extent(split)
    end = axes.transData.transform((11, short["error"][11]))
    assert axes.bbox.x0 < box.x0 < axes.bbox.x1
    assert np.hypot(*(np.clip(end, box.min, box.max) - end)) < 30


def test_pictures_are_as_wide_as_a_column_or_a_page():
    t = {"a": trace(energy=[2.0, 1.0], gradients=[0.0, 1.0])}
    assert convergence(t, y="energy").get_figwidth() == 7.2
    assert convergence(t, y="energy", width="column").get_figwidth() == 3.5
    stacked = convergence(t, x=("round", "gradients"), y="energy", width="column")
    assert stacked.axes[0].get_position().x0 == pytest.approx(stacked.axes[1].get_position().x0)
    with pytest.raises(ValueError, match="width must be column or page, not 'wide'"):
        convergence(t, y="energy", width="wide")


def test_the_sizes_of_the_user_count():
    t = {"a": trace(energy=[2.0, 1.0])}
    assert convergence(t, y="energy", figsize=(5.0, 2.0)).get_size_inches().tolist() == [5.0, 2.0]
    with rc_context({"figure.figsize": (4.0, 3.0), "lines.linewidth": 3.0, "axes.labelsize": 12.0}):
        figure = convergence(t, y="energy")
    assert figure.get_size_inches().tolist() == [4.0, 3.0]
    assert figure.axes[0].lines[0].get_linewidth() == 3.0
    assert figure.axes[0].xaxis.label.get_fontsize() == 12.0
    assert convergence(t, y="energy").axes[0].xaxis.label.get_fontsize() == 8.0


def test_axes_of_the_user_are_drawn_on():
    figure = Figure(figsize=(5.0, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    t = {"fedsplit": trace(energy=[2.0, 1.0], gradients=[0.0, 1.0])}
    assert convergence(t, y="energy", x=("round", "gradients"), ax=(left, right), title="T") is figure
    assert figure.get_size_inches().tolist() == [5.0, 3.0]
    assert (len(left.lines), len(right.lines), left.get_title()) == (1, 1, "T")
    assert [text.get_text() for text in right.texts] == ["FedSplit"]
    assert single_run(trace(energy=[2.0, 1.0], certified_error=[0.2, 0.1]), ax=left) is figure
    with pytest.raises(ValueError, match="ax must be one for each column x: 1, not 2"):
        convergence(t, y="energy", ax=(left, right))
    fixed = Figure()  # names cannot make room beside its panel
    axes = fixed.subplots(gridspec_kw={"right": 1.0})
    legend = convergence(t, y="energy", ax=axes).axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["FedSplit"]


def test_save_replaces_a_file_only_when_the_new_one_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    save(convergence({"a": trace(energy=[2.0, 1.0])}, y="energy"), path)
    height, width, _ = image.imread(path).shape
    assert (width, height) == (round(7.2 * 150), round(4.0 * 150))
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


def kinds_of_fonts(pdf):
    return set(re.findall(rb"/Subtype /(Type[0-9]|TrueType|CIDFontType2)", pdf))


def test_no_pdf_has_fonts_of_type_3(tmp_path):
    """Journals refuse them; Matplotlib writes dictionaries of fonts uncompressed, formulas have fonts of their own."""
    t = {"fedsplit": trace(energy=[2.0, 1.0]), "dualfl": trace(energy=[2.0, 1.5])}
    figure = convergence(t, y="energy", title=r"$\mu$ = 0.01, $\sqrt{\kappa}$")
    assert plotting.save_for_print(figure, tmp_path / "a") == ["a.png", "a.pdf"]
    assert kinds_of_fonts((tmp_path / "a.pdf").read_bytes()) == {b"Type0", b"CIDFontType2"}
    file = io.BytesIO()
    figure.savefig(file, format="pdf")
    assert b"Type3" in kinds_of_fonts(file.getvalue())  # what Matplotlib does by itself


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
