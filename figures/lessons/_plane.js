// A plane, and what is drawn there. Entries that move have the rounds first.

function drawPlane(svg, plane, n, w, h, legend) {
  const axed = plane.x_label || plane.y_label;
  const [left, right, top, bottom] = axed ? [84, 14, 10, 52] : [2, 2, 2, 2], frame = { left, right, top, bottom, w, h };
  const wide = w - left - right, high = h - top - bottom;
  let { x, y } = plane;
  if (plane.equal) { // widen one of the ranges
    const unit = Math.max((x[1] - x[0]) / wide, (y[1] - y[0]) / high);
    const widened = (range, pixels) => [d3.mean(range) - (unit * pixels) / 2, d3.mean(range) + (unit * pixels) / 2];
    [x, y] = [widened(x, wide), widened(y, high)];
  }
  const X = scaleOf(plane.log_x, x, [left, w - right]), Y = scaleOf(plane.log_y, y, [h - bottom, top]);
  if (axed) axes(svg, X, Y, plane, frame);
  else add(svg, "rect", { x: 1, y: 1, width: w - 2, height: h - 2, fill: "none", stroke: "var(--grid)" });
  const room = clipped(svg, frame), px = (p) => [X(p[0]), Y(p[1])];
  for (const mark of plane.marks) MARKS[mark.kind](mark, { room, legend, X, Y, px, n, w });
}

const now = (a, n) => (Array.isArray(a[0][0]) ? a[Math.min(n, a.length - 1)] : a);
const inkOf = (colours, k) => colour(Array.isArray(colours) ? colours[k] : colours);

const MARKS = {
  Path(m, { room, legend, px, n }) {
    const dash = m.dashed ? "6 5" : "";
    add(room, "path", { d: d3.line()(m.points.slice(0, n + 1).map(px)), ...pen(colour(m.colour), dash, 2.5) });
    if (m.label) entry(legend, m.label, colour(m.colour), stroke(dash, 2.5));
  },
  Dots(m, { room, legend, px, n }) {
    const dot = (to, [x, y], r, ink) =>
      SHAPES[m.shape](add(to, "g", { transform: `translate(${x},${y})`, fill: ink }).style("color", ink), r);
    now(m.points, n).forEach((p, k) => dot(room, px(p), 7, inkOf(m.colours, k)));
    if (m.label) entry(legend, m.label, inkOf(m.colours, 0), (s, ink) => dot(s, [13, 9], 5, ink));
  },
  Arrows(m, { room, legend, px, n, w }) {
    const tails = now(m.tails, n), vectors = now(m.vectors, n);
    const unit = (m.length * w) / (d3.max(vectors, (v) => Math.hypot(...v)) || 1);
    vectors.forEach(([x, y], k) => arrow(room, px(tails[k]), [unit * x, -unit * y], inkOf(m.colours, k)));
    if (m.label) entry(legend, m.label, inkOf(m.colours, 0), (s, ink) => arrow(s, [3, 9], [20, 0], ink));
  },
  Lines(m, { room, legend, px }) {
    const width = m.faint ? 1.3 : 2.5, opacity = m.faint ? 0.5 : 1;
    const style = { ...pen(colour(m.colour), "", width), opacity };
    for (const points of m.lines) add(room, "path", { d: d3.line()(points.map(px)), ...style });
    if (m.label) entry(legend, m.label, colour(m.colour), stroke("", width));
  },
  Text(m, { room, X, Y }) {
    add(room, "text", { x: X(m.at[0]), y: Y(m.at[1]) }).style("fill", colour(m.colour)).text(m.text);
  },
  Cells(m, { room, legend, X, Y }) {
    const edges = (values, scale) => {
      const p = values.map(scale), mid = d3.pairs(p, (a, b) => (a + b) / 2);
      return [2 * p[0] - mid[0], ...mid, 2 * p.at(-1) - mid.at(-1)];
    };
    const sides = (e, k) => [Math.min(e[k], e[k + 1]), Math.abs(e[k + 1] - e[k]) + 0.5];
    const ex = edges(m.x, X), ey = edges(m.y, Y);
    const fill = (to, [x, width], [y, height], c) =>
      add(to, "rect", { x, y, width, height, fill: colour(m.colours[c]), opacity: 0.55 });
    m.classes.forEach((row, i) => row.forEach((c, k) => {
      const cell = fill(room, sides(ex, k), sides(ey, i), c);
      if (!m.on_x && !m.on_y) return;
      cell.style("cursor", "pointer").on("click", () => moveTo([m.on_x, m.x[k]], [m.on_y, m.y[i]]));
    }));
    m.names.forEach((name, c) => entry(legend, name, "", (s) => fill(s, [4, 18], [1, 15], c)));
  },
  Handle(m, { room, legend, X, Y, px }) { // 44 px to grab; the arrow keys move it too
    const [x, y] = px(m.at), id = `handle-${m.x}-${m.y}`, ink = colour(m.colour);
    const named = { "aria-label": `${m.label || m.x}: drag, or use the arrow keys`, role: "application", tabindex: 0 };
    const g = add(room, "g", { class: "handle", id, transform: `translate(${x},${y})`, ...named });
    add(g, "circle", { r: 22, fill: ink, opacity: 0.15 });
    add(g, "circle", { r: 9, fill: ink, stroke: "var(--paper)", "stroke-width": 2 });
    if (m.label) entry(legend, m.label, ink, disc(7));
    const drag = (event) => {
      const [a, b] = d3.pointer(event, room.node());
      moveTo([m.x, X.invert(a)], [m.y, Y.invert(b)]);
    };
    g.on("pointerdown", (event) => {
      event.preventDefault();
      const everywhere = d3.select(window).on("pointermove.drag", drag);
      everywhere.on("pointerup.drag pointercancel.drag", () => everywhere.on(".drag", null));
    });
    g.on("keydown", (event) => {
      const step = { ArrowLeft: [m.x, -1], ArrowRight: [m.x, 1], ArrowDown: [m.y, -1], ArrowUp: [m.y, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      $(step[0]).value = Math.max(0, Number($(step[0]).value) + step[1]);
      moveTo();
      const again = new MutationObserver(() => { $(id)?.focus(); again.disconnect(); });
      again.observe(document.body, { attributes: true, attributeFilter: ["data-at"] });
    });
  },
};
