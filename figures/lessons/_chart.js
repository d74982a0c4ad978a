// A chart: curves over a common axis. Curves that move have the rounds first.

const DASHES = { error: "", certificate: "0.1 7", theorem: "9 6", limit: "2 5" };
const NAMED = ["error", "certificate", "theorem"]; // roles that the legend names where there are certificates

function drawChart(svg, chart, n, w, h, legend) {
  const frame = { left: 84, right: 14, top: 10, bottom: 52, w, h };
  const seen = (v, log) => Number.isFinite(v) && (!log || v > 0);
  const xs = chart.curves.flatMap((c) => c.x).filter((v) => seen(v, chart.log_x)).concat(chart.marks.map((m) => m[0]));
  const ys = chart.curves.flatMap((c) => c.y.flat()).filter((v) => seen(v, chart.log_y));
  const top = d3.max(ys), low = chart.log_y ? Math.max(d3.min(ys), 1e-16 * top) : Math.min(0, d3.min(ys));
  const [x0, x1] = d3.extent(xs), half = chart.curves.some((c) => c.role === "bars") ? 0.5 : 0; // of a bar's place
  const range = chart.y_range ?? [low, top > low ? top : low + 1];
  const X = scaleOf(chart.log_x, [x0 - half, x1 + half], [frame.left + 8, w - frame.right - 8]);
  const Y = scaleOf(chart.log_y, range, [h - frame.bottom - 6, frame.top + 6]);
  if (!chart.y_range && !chart.log_y) Y.nice();
  axes(svg, X, Y, chart, frame);

  const room = clipped(svg, frame);
  const upright = (x, dash) =>
    add(room, "line", { x1: X(x), x2: X(x), y1: frame.top, y2: h - frame.bottom, ...pen("var(--ink)", dash, 1.5) });
  if (chart.rounds) upright(n + 1, "2 5");
  for (const [x] of chart.marks) upright(x, "6 5");
  const wide = Math.max(2, (0.8 * (w - frame.left - frame.right)) / (x1 - x0 + 1)); // of bars
  const base = Y(Math.max(0, Y.domain()[0]));
  for (const c of chart.curves) {
    const all = d3.zip(c.x, c.moving ? c.y[n] : c.y);
    const points = all.filter((p) => seen(p[0], chart.log_x) && seen(p[1], chart.log_y));
    drawCurve(room, c.role, points.map((p) => [X(p[0]), Y(p[1])]), colour(c.colour), wide, base);
  }
  for (const [x, text] of chart.marks) { // above the curves, on the side with room
    const late = X(x) + 6 + 9 * text.length > w, at = { x: X(x) + (late ? -6 : 6), y: frame.top + 16 };
    add(svg, "text", { class: "mark", "text-anchor": late ? "end" : "start", ...at }).text(text);
  }
  chartLegend(legend, chart.curves);
}

function drawCurve(room, role, points, ink, wide, base) { // points in pixels
  const circles = (r, attributes) => {
    for (const [cx, cy] of points) add(room, "circle", { cx, cy, r, ...attributes });
  };
  if (role === "certificate") circles(3.5, pen(ink, "", 1.5));
  else if (role === "points") circles(8, { fill: ink, stroke: "var(--paper)", "stroke-width": 1.5 });
  else if (role === "bars") {
    for (const [x, y] of points) {
      const box = { x: x - wide / 2, y: Math.min(base, y), width: wide, height: Math.abs(base - y) };
      add(room, "rect", { ...box, fill: ink, opacity: 0.75 });
    }
  } else add(room, "path", { d: d3.line()(points), ...pen(ink, DASHES[role], role === "error" ? 3.5 : 2.2) });
}

function chartLegend(legend, curves) { // labels by colour, then roles by style
  for (const c of curves.filter((c, k) => curves.findIndex((other) => other.label === c.label) === k)) {
    const line = stroke(DASHES[c.role] ?? "", c.role === "limit" ? 3 : 5);
    entry(legend, c.label, colour(c.colour), c.role === "points" ? disc(7) : line);
  }
  const roles = new Set(curves.map((c) => c.role));
  if (!roles.has("certificate")) return;
  const circle = (s, ink) => add(s, "circle", { cx: 13, cy: 9, r: 4, ...pen(ink, "", 1.5) });
  for (const role of NAMED.filter((role) => roles.has(role))) {
    entry(legend, role, "var(--soft)", role === "certificate" ? circle : stroke(DASHES[role], 3));
  }
}
