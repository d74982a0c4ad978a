"""The names of curves: each at the end of its curve where there is room for all, else a legend below the panels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

__all__ = ["name_curves"]

AT_THE_RIGHT = 0.75  # of the width: names of curves that end beyond are beside the panel
MOST_LEGEND = 0.35  # of the height of the figure
SHARE = 0.4  # of the width of the figure: the most that names take
LINE = 1.2  # of the size of letters: from one name to the next
GAP = 0.6  # the same: from the end of a curve to its name
DARK = 0.75  # of the colour of a curve: pale letters cannot be read


def name_curves(panels: Sequence[Axes]) -> None:
    """Write the names of the curves at their ends in the last panel, or else below all panels.

    A curve with an empty label, or one that begins with an underscore, has no name.

    Parameters
    ----------
    panels : sequence of Axes
        Panels of one figure, with the same curves.
    """
    handles = {str(line.get_label()): line for axes in panels for line in axes.lines}
    handles = {label: line for label, line in handles.items() if label and not label.startswith("_")}
    last = [line for line in panels[-1].lines if str(line.get_label()) in handles]
    if handles and (len(last) < len(handles) or not _at_ends(panels[-1], last)):
        _below(panels, handles)


def _at_ends(axes: Axes, lines: Sequence[Line2D]) -> bool:
    """Write the names at the ends of the curves; return whether all have room, else write none."""
    figure, names = axes.get_figure(root=True), []
    assert figure is not None
    for _ in range(2):  # names take room, which moves the ends
        _lay_out(figure)
        _remove(names)
        names = _written(axes, lines)
        if not names:
            return False
    _lay_out(figure)
    boxes = [_box(name) for name in names]
    apart = not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    if apart and all(figure.bbox.padded(1).containsx(x) for box in boxes for x in (box.x0, box.x1)):
        return True
    _remove(names)
    return False


def _lay_out(figure: Figure) -> None:
    """Move the panels to where they will be drawn; without a layout that does so, they are where a drawing has them."""
    engine = figure.get_layout_engine()
    if engine is None:
        figure.draw_without_rendering()
    else:
        engine.execute(figure)


def _written(axes: Axes, lines: Sequence[Line2D]) -> list[Annotation]:
    """Write the names, those of curves that end early inside the panel; return none if there is no room."""
    size = _size(axes)
    ends = {line: end for line in lines if (end := _end(axes, line)) is not None}
    beside = sorted((line for line in ends if _share(axes, ends[line]) >= AT_THE_RIGHT), key=lambda x: ends[x][1])
    if len(ends) < len(lines) or LINE * size * (len(beside) - 1) > axes.bbox.height:
        return []
    names: list[Annotation] = []
    heights = spread([float(ends[line][1]) for line in beside], LINE * size, axes.bbox.y0, axes.bbox.y1)
    for line, height in zip(beside, heights, strict=True):
        names.append(_name(axes, line, ends[line], (axes.bbox.x1 + GAP * size, height), "left"))
    boxes = [_box(name) for name in names]
    if max((box.width for box in boxes), default=0.0) > SHARE * axes.get_figure(root=True).bbox.width:  # type: ignore[union-attr]
        return _remove(names)
    drawn = np.concatenate([_dense(axes, line) for line in lines])
    for line in (line for line in ends if line not in beside):
        for place, side in _around(ends[line], GAP * size):
            name = _name(axes, line, ends[line], place, side)
            box = _box(name)
            inside = axes.bbox.containsx(box.x0) and axes.bbox.containsx(box.x1)
            inside = inside and axes.bbox.containsy(box.y0) and axes.bbox.containsy(box.y1)
            if inside and not (box.count_contains(drawn) or any(box.overlaps(other) for other in boxes)):
                names.append(name)
                boxes.append(box)
                break
            name.remove()
        else:
            return _remove(names)
    return names


def spread(wanted: Sequence[float], gap: float, bottom: float, top: float) -> list[float]:
    """Return the heights nearest to those wanted, which increase, that are a gap apart and in bounds if these hold all.

    Examples
    --------
    >>> spread([0.0, 5.0, 5.0, 9.0], 2.0, 0.0, 9.0)
    [0.0, 4.0, 6.0, 9.0]
    """
    blocks: list[list[float]] = []  # sum and number of heights that touch, less the gaps below each
    for i, height in enumerate(wanted):
        blocks.append([height - i * gap, 1.0])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            total, number = blocks.pop()
            blocks[-1] = [blocks[-1][0] + total, blocks[-1][1] + number]
    levels = [total / number for total, number in blocks for _ in range(int(number))]
    most = max(bottom, top - gap * (len(levels) - 1))
    return [min(max(level, bottom), most) + i * gap for i, level in enumerate(levels)]


def _name(axes: Axes, line: Line2D, end: Any, place: tuple[float, float], side: str) -> Annotation:
    """Write one name in pixels, with a thin line to the end of its curve where that is not beside it."""
    far = abs(place[1] - end[1]) > 0.5 * _size(axes) or abs(place[0] - end[0]) > 3.0 * GAP * _size(axes)
    color = to_rgb(line.get_color())
    leader: dict[str, Any] = {"arrowstyle": "-", "color": color, "linewidth": 0.5, "shrinkA": 1, "shrinkB": 1}
    leader["relpos"] = ({"left": 0.0, "center": 0.5, "right": 1.0}[side], 0.5)
    return axes.annotate(
        str(line.get_label()).strip(),
        tuple(axes.transData.inverted().transform(end)),
        tuple(axes.transAxes.inverted().transform(place)),
        textcoords="axes fraction",
        annotation_clip=False,
        ha=side,
        va="center",
        fontsize=_points(axes),
        color=tuple(DARK * part for part in color),
        arrowprops=leader if far else None,
    )


def _around(end: Any, gap: float) -> Iterator[tuple[tuple[float, float], str]]:
    """Yield places around the end of a curve, and which side of the name is there."""
    for y in (0.0, gap, -gap, 2.5 * gap, -2.5 * gap):
        yield (end[0] + gap, end[1] + y), "left"
    for y in (2.5 * gap, -2.5 * gap):
        yield (end[0], end[1] + y), "center"
        yield (end[0] - gap, end[1] + y), "right"


def _end(axes: Axes, line: Line2D) -> Any:
    """Return the last point of a curve that is seen, in pixels; None if none is."""
    points = _pixels(axes, line)
    seen = [axes.bbox.padded(1).contains(*point) for point in points]
    return points[seen][-1] if any(seen) else None


def _dense(axes: Axes, line: Line2D) -> np.ndarray:
    """Return points of a curve, in pixels, so many that none of its parts crosses a name unseen."""
    points = _pixels(axes, line)
    if len(points) < 2:
        return points
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    at = np.linspace(0.0, along[-1], 2 + int(min(along[-1], 1e5) / (0.3 * _size(axes))))
    return np.column_stack([np.interp(at, along, part) for part in points.T])


def _pixels(axes: Axes, line: Line2D) -> np.ndarray:
    """Return the points of a curve, in pixels, without those that have no place on the axes."""
    with np.errstate(all="ignore"):
        points = axes.transData.transform(np.asarray(line.get_xydata(), dtype=float))
    return points[np.isfinite(points).all(axis=1)]


def _share(axes: Axes, point: Any) -> float:
    return (point[0] - axes.bbox.x0) / axes.bbox.width


def _points(axes: Axes) -> float:
    """Return the size of letters of names: that of the ticks."""
    return float(axes.xaxis.get_ticklabels()[0].get_fontsize())


def _size(axes: Axes) -> float:
    """Return the size of letters, in pixels."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return _points(axes) * figure.dpi / 72.0


def _box(name: Annotation) -> Bbox:
    """Return where the letters are, without the line that leads to them."""
    name.get_window_extent()  # moves it to where it belongs
    return Text.get_window_extent(name)


def _remove(names: list[Annotation]) -> list[Annotation]:
    for name in names:
        name.remove()
    return []


def _below(panels: Sequence[Axes], handles: dict[str, Line2D]) -> None:
    """Draw a legend below the panels in as many columns as fit, or in the panel where the layout is the user's."""
    figure = panels[0].get_figure(root=True)
    assert isinstance(figure, Figure)
    labels = [label.strip() for label in handles]
    if figure.get_layout_engine() is None:
        panels[-1].legend(list(handles.values()), labels)
        return
    for columns in range(len(labels), 0, -1):
        legend = figure.legend(list(handles.values()), labels, loc="outside lower center", ncols=columns)
        box = legend.get_window_extent()
        if box.width <= figure.bbox.width or columns == 1:
            break
        legend.remove()
    too_high = box.height / figure.bbox.height - MOST_LEGEND
    if too_high > 0:  # panels keep their share
        figure.set_figheight(figure.get_figheight() * (1.0 + too_high / (1.0 - MOST_LEGEND)))
