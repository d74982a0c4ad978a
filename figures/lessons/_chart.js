// A chart: curves with their names at their ends, and the curve that the reader draws.

class ChartPicture {
  constructor(figure, chapter, chart) {
    [this.chapter, this.chart] = [chapter, chart];
    this.drawn = chapter.ask.kind === "curve" && chart === chapter.described.chart; // by the reader
    this.svg = figure.querySelector("svg");
    this.figure = figure;
    this.below = new Layer(this.svg, { "aria-hidden": "true" });
    this.grabs = new Layer(this.svg);
    this.labels = new Labels(this.below);
    if (this.drawn) this.drawing();
    this.measure();
  }

  measure() {
    this.w = this.svg.parentNode.clientWidth;
    this.h = Math.round(innerWidth < 700 ? Math.max(200, 0.3 * innerHeight) : Math.min(0.72 * this.w, 0.5 * innerHeight));
    this.svg.setAttribute("viewBox", `0 0 ${this.w} ${this.h}`);
    this.svg.style.height = `${this.h}px`;
  }

  // The curves that are shown, each with its points.
  curves() {
    const { chapter } = this, { numbers } = chapter;
    return this.chart.curves.filter((c) => chapter.shows(c)).map((c) => {
      if (c.mark === "Level") return { ...c, level: typeof c.of === "string" ? numbers.entry(c.of)[0] : c.of };
      if (c.mark === "Bars") return { ...c, y: [...numbers.entry(c.of)], x: [...numbers.entry(c.of).keys()].map((i) => i + 1) };
      const y = [...(c.over ? numbers.over(c.of, c.over) : c.x.length ? numbers.entry(c.of) : numbers.series(c.of, c.entry))];
      return { ...c, y, x: c.over ? chapter.sliders[c.over].values : c.x.length ? c.x : y.map((_, i) => i + 1) };
    });
  }

  ranges(curves) {
    const { chart, chapter } = this, seen = (v) => Number.isFinite(v) && (!chart.log_y || v > 0), bars = curves.some((c) => c.mark === "Bars");
    const xs = curves.flatMap((c) => c.x ?? []), guess = this.drawn ? chapter.state.guess : [];
    if (!xs.length) xs.push(...chart.curves.flatMap((c) => (c.over ? chapter.sliders[c.over].values : [])));
    const x = [Math.min(...xs) - 0.6 * bars, Math.max(...xs) + 0.6 * bars];
    if (chart.y) return [x, chart.y.map((v) => (typeof v === "string" ? chapter.numbers.entry(v)[0] : v))];
    const ys = [...curves.flatMap((c) => c.y ?? [c.level]), ...guess].filter(seen), high = Math.max(chart.least, ...ys);
    if (!chart.log_y) return [x, [Math.min(0, ...ys), high + 0.08 * (high - Math.min(0, ...ys))]];
    const top = Math.ceil(Math.log10(high) + 0.1), low = Math.floor(Math.log10(Math.max(Math.min(...ys), 10 ** (top - chart.decades))));
    return [x, [10 ** low, 10 ** top]];
  }

  draw() {
    const { chapter, chart, below, grabs, labels, w, h } = this, shown = chapter.shows(chart);
    this.figure.hidden = !shown;
    if (!shown || w < 50) return;
    const curves = this.curves(), [x, y] = this.ranges(curves);
    const room = Math.min(0.42 * w, 14 + Math.max(...curves.map((c) => widthOf(chapter.filled(c.label)))));
    const frame = { left: 58, right: room, top: 30, bottom: 44, w, h };
    const X = scale(chart.log_x, x, [frame.left + 6, w - room - 6]), Y = scale(chart.log_y, y, [h - frame.bottom, frame.top]);
    [this.X, this.Y] = [X, Y];
    for (const layer of [below, grabs]) layer.begin();
    labels.begin(w, h);
    axes(below, X, Y, [chart.x_label, chart.y_label], frame);
    const inside = (v) => Math.max(frame.top - 2, Math.min(h - frame.bottom, Y(v)));
    const here = curves.find((c) => c.over)?.over;
    const now = here ? chapter.sliders[here].values[chapter.state.pick[here]] : chapter.described.rounds && chapter.shown() ? chapter.state.n : NaN;
    if (Number.isFinite(now)) below.put("now", "line", { x1: near(X(now)), x2: near(X(now)), y1: frame.top, y2: h - frame.bottom, class: "now" });
    const words = [];
    curves.forEach((c, k) => CURVES[c.mark](this, c, `${k}`, { X, Y, inside, frame, now, words }));
    if (this.drawn) this.guess(X, Y, words);
    if (chart.theorem !== null && chapter.shown()) this.witness(X, inside);
    this.name(words, frame);
    for (const layer of [below, grabs]) layer.end();
  }

  name(words, frame) { // at the ends of the curves, from the top, each below the one before
    let free = 12;
    const high = 17, last = this.h - frame.bottom - 10; // above the axis
    words.sort((a, b) => a.y - b.y);
    const rows = words.map((word) => (free = Math.max(word.y, free + high)));
    for (let k = rows.length - 1, most = last; k >= 0; k--, most -= high) rows[k] = Math.min(rows[k], most);
    words.forEach(({ key, text, x, y, colour }, k) => {
      if (Math.abs(rows[k] - y) > 6) this.below.put(`tie ${key}`, "line", { x1: near(x), y1: near(y), x2: near(x + 7), y2: near(rows[k]), stroke: ink(colour), "stroke-width": 1 });
      this.below.put(`name ${key}`, "text", { x: near(x + 9), y: near(rows[k] + 5), class: "label", fill: ink(colour) }, text);
    });
  }

  witness(X, inside) { // the first inequality that fails, or the tightest
    const j = this.chapter.judged[this.chart.theorem];
    if (!j || j.n === undefined || !Number.isFinite(j.lhs)) return;
    const colour = j.verdict === "violated" ? "bad" : "bound", x = X(j.n);
    this.below.put("witness", "line", { x1: near(x), x2: near(x), y1: near(inside(j.lhs)), y2: near(inside(j.rhs)), ...pen(colour, "solid", 4) });
    for (const [key, v] of [["a", j.lhs], ["b", j.rhs]]) shape(this.below, `witness ${key}`, "open disc", [x, inside(v)], colour, 5);
  }

  guess(X, Y, words) { // the knots of the reader's curve
    const { chapter } = this, { knots } = chapter.ask, { guess } = chapter.state;
    const px = knots.map((n, k) => [X(n), Math.max(30, Math.min(this.h - 44, Y(guess[k])))]);
    this.below.put("guess", "path", { d: lineOf(px), ...pen("guess", "dash-dot", 3) });
    words.push({ key: "guess", text: "your guess", x: px.at(-1)[0], y: px.at(-1)[1], colour: "guess" });
    if (!chapter.shown()) px.forEach(([x, y], k) => {
      const to = (v) => { guess[k] = Math.min(Math.max(v, Y.domain[0]), Y.domain[1]); chapter.change(); };
      const g = grab(this.grabs, `knot ${k}`, this.svg, `your guess at round ${knots[k]}: up and down`, {
        moved: (_, b) => to(this.Y.back(b)),
        stepped: (_, d) => to(this.Y.back(this.Y(guess[k]) - 6 * d)),
        done: () => chapter.done(),
      });
      const low = Math.log10(Y.domain[0]), high = Math.log10(Y.domain[1]);
      this.grabs.put(`knot ${k}`, "g", {
        transform: `translate(${near(x)},${near(y)})`, "aria-orientation": "vertical", "aria-valuemin": Math.round(low), "aria-valuemax": Math.round(high),
        "aria-valuenow": Math.log10(guess[k]).toFixed(2), "aria-valuetext": written(guess[k]),
      });
      if (!g.firstChild) {
        for (const [r, attributes] of [[22, { class: "target" }], [6, { fill: ink("guess"), stroke: "var(--paper)" }]]) {
          const made = document.createElementNS(SVG, "circle");
          for (const [name, value] of Object.entries({ r, ...attributes })) made.setAttribute(name, value);
          g.append(made);
        }
      }
    });
  }

  drawing() { // a stroke over the chart moves the knots that it passes
    const { svg, chapter } = this;
    let held = false;
    const at = (event) => {
      const box = svg.getBoundingClientRect(), x = event.clientX - box.left, { knots } = chapter.ask;
      const k = knots.reduce((best, n, i) => (Math.abs(this.X(n) - x) < Math.abs(this.X(knots[best]) - x) ? i : best), 0);
      chapter.state.guess[k] = Math.min(Math.max(this.Y.back(event.clientY - box.top), this.Y.domain[0]), this.Y.domain[1]);
      chapter.change();
    };
    svg.addEventListener("pointerdown", (event) => {
      if (event.target.closest(".grab") || chapter.shown()) return;
      held = true;
      svg.setPointerCapture(event.pointerId);
      at(event);
    });
    svg.addEventListener("pointermove", (event) => held && at(event));
    for (const kind of ["pointerup", "pointercancel"]) svg.addEventListener(kind, () => { if (held) { held = false; chapter.done(); } });
    svg.classList.add("drawn");
  }
}

// The parts of a line between two heights, cut where it leaves them.
function within(points, high, low) {
  const parts = [];
  let open = null;
  points.forEach((p, i) => {
    const in_ = p[1] >= high && p[1] <= low, before = points[i - 1];
    if (before) {
      const cuts = [high, low].map((y) => [(y - before[1]) / (p[1] - before[1]), y]).filter(([t]) => t > 0 && t < 1).sort((a, b) => a[0] - b[0]);
      for (const [t, y] of cuts) {
        const cut = [before[0] + t * (p[0] - before[0]), y];
        if (open) { open.push(cut); open = null; } else parts.push(open = [cut]);
      }
    }
    if (in_) { if (open) open.push(p); else parts.push(open = [p]); }
  });
  return parts;
}

const CURVES = {
  Curve({ below, chapter }, c, key, { X, Y, inside, frame, now, words }) {
    const seen = c.x.map((x, i) => [x, c.y[i]]).filter(([, v]) => Number.isFinite(v) && (!Y.log || v > 0) && v <= 1e30);
    if (!seen.length) return;
    const px = seen.map(([x, v]) => [X(x), Y(v)]), high = frame.top - 2, low = frame.h - frame.bottom;
    const parts = within(px, high, low), seenAt = ([, y]) => y >= high && y <= low + 1;
    if (!c.points) below.put(key, "path", { d: parts.map(lineOf).join(""), ...pen(c.ink, c.dash, c.dash === "solid" ? 2.8 : 2.2) });
    else px.forEach((p, i) => seenAt(p) && shape(below, `${key} ${i}`, c.shape, p, c.ink, 4));
    const k = seen.findIndex(([x]) => x === now);
    if (k >= 0 && seenAt(px[k])) shape(below, `${key} now`, c.shape, px[k], c.ink, 5);
    const end = parts.at(-1)?.at(-1) ?? [px.at(-1)[0], inside(seen.at(-1)[1])];
    words.push({ key, text: chapter.filled(c.label), x: end[0], y: end[1], colour: c.ink });
  },
  Level({ below, chapter }, c, key, { inside, frame, words }) {
    if (!Number.isFinite(c.level)) return;
    const y = near(inside(c.level));
    below.put(key, "line", { x1: frame.left, x2: frame.w - frame.right, y1: y, y2: y, ...pen(c.ink, c.dash, 2) });
    words.push({ key, text: chapter.filled(c.label), x: frame.w - frame.right - 6, y, colour: c.ink });
  },
  Bars({ below }, c, key, { X, Y, words }) {
    const wide = Math.max(2, 0.62 * (X(2) - X(1))), base = Y(0);
    c.y.forEach((v, i) => {
      const top = Math.min(base, Y(v)), high = Math.max(v ? 1.5 : 0, Math.abs(base - Y(v)));
      below.put(`${key} ${i}`, "rect", { x: near(X(i + 1) - wide / 2), y: near(top), width: near(wide), height: near(high), fill: ink(c.faint ? `${c.ink}-soft` : c.ink), stroke: ink(c.ink), "stroke-width": c.faint ? 1 : 0 });
      if (c.links.length && i < c.y.length - 1) {
        const own = c.links[i % c.links.length];
        below.put(`${key} link ${i}`, "line", { x1: near(X(i + 1) + 3), x2: near(X(i + 2) - 3), y1: near(base + 4), y2: near(base + 4), ...pen(own, i % 2 ? "dotted" : "solid", 3) });
      }
    });
    words.push({ key, text: c.label, x: X(c.y.length) + wide / 2, y: Math.min(base, Y(c.y.at(-1))), colour: c.ink });
  },
};

// A map of classes over two sliders, drawn as one area with its own pattern for each class.
class MapPicture extends ChartPicture {
  draw() {
    const { chapter, chart: m, below, labels, w, h } = this, shown = chapter.shows(m);
    this.figure.hidden = !shown;
    if (!shown || w < 50) return;
    const xs = chapter.sliders[m.x].values, ys = chapter.sliders[m.y].values;
    const edges = (v) => [v[0] ** 1.5 / v[1] ** 0.5, ...v.slice(1).map((b, i) => Math.sqrt(b * v[i])), v.at(-1) ** 1.5 / v.at(-2) ** 0.5];
    const [ex, ey] = [edges(xs), edges(ys)], frame = { left: 58, right: 14, top: 30, bottom: 44, w, h };
    const X = scale(true, [ex[0], ex.at(-1)], [frame.left, w - frame.right]), Y = scale(true, [ey[0], ey.at(-1)], [h - frame.bottom, frame.top]);
    const middles = [];
    below.begin();
    labels.begin(w, h);
    m.names.forEach((name, c) => {
      const cells = [], places = [];
      m.classes.forEach((row, i) => row.forEach((one, k) => {
        if (one !== c) return;
        cells.push(`M${near(X(ex[k]))} ${near(Y(ey[i]))}H${near(X(ex[k + 1]))}V${near(Y(ey[i + 1]))}H${near(X(ex[k]))}Z`);
        places.push([X(xs[k]), Y(ys[i])]);
      }));
      if (!cells.length) return;
      below.put(`area ${c}`, "path", { d: cells.join(""), fill: ink(`${m.inks[c]}-soft`), stroke: "var(--paper)", "stroke-width": 0.5 });
      below.put(`pattern ${c}`, "path", { d: cells.join(""), fill: `url(#hatch-${c})` });
      const [a, b] = [0, 1].map((d) => places.reduce((total, p) => total + p[d], 0) / places.length);
      middles.push([c, name, places.reduce((best, p) => (Math.hypot(p[0] - a, p[1] - b) < Math.hypot(best[0] - a, best[1] - b) ? p : best))]);
    });
    axes(below, X, Y, [m.x_label, m.y_label], frame);
    if (m.border.length) {
      const line = m.border.filter(([a, b]) => a >= ex[0] && a <= ex.at(-1) && b <= ey.at(-1) && b >= ey[0]).map(([a, b]) => [X(a), Y(b)]);
      below.put("border", "path", { d: lineOf(line), ...pen("bound", "dashed", 3) });
      labels.put("border", m.border_label, line[line.length >> 1], "bound", 8);
    }
    const [x, y] = [xs[chapter.state.pick[m.x]], ys[chapter.state.pick[m.y]]];
    shape(below, "here", "open disc", [X(x), Y(y)], "ink", 9);
    labels.put("here", "this cell", [X(x), Y(y)], "ink", 12);
    for (const [c, name, at] of middles) labels.put(`name ${c}`, name, at, "ink", 0);
    below.end();
    this.svg.onclick = (event) => {
      const box = this.svg.getBoundingClientRect(), a = X.back(event.clientX - box.left), b = Y.back(event.clientY - box.top);
      const nearest = (v, to) => v.reduce((best, one, i) => (Math.abs(Math.log(one / to)) < Math.abs(Math.log(v[best] / to)) ? i : best), 0);
      chapter.state.pick[m.x] = nearest(xs, a);
      chapter.state.pick[m.y] = nearest(ys, b);
      chapter.change();
      chapter.done();
    };
  }
}
