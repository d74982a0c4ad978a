// The plane of models: clients, ways, points, and what is dragged in it.

const STEP = 0.05; // of an arrow key, in units of the plane

class PlanePicture {
  constructor(figure, chapter, plane) {
    [this.chapter, this.plane] = [chapter, plane];
    this.svg = figure.querySelector("svg");
    this.below = new Layer(this.svg, { "aria-hidden": "true" });
    this.grabs = new Layer(this.svg);
    this.above = new Layer(this.svg, { "aria-hidden": "true", class: "above" });
    this.labels = new Labels(this.above);
    this.measure();
  }

  measure() { // one unit has the same length on both axes
    const w = this.svg.parentNode.clientWidth, { x, y } = this.plane;
    if (w < 50) return; // not laid out
    const most = innerWidth < 700 ? 0.34 * innerHeight : 0.56 * innerHeight;
    const h = Math.round(Math.max(220, Math.min((w * (y[1] - y[0])) / (x[1] - x[0]), most)));
    const unit = Math.max((x[1] - x[0]) / w, (y[1] - y[0]) / h), half = (r, pixels) => {
      const middle = (r[0] + r[1]) / 2;
      return [middle - (unit * pixels) / 2, middle + (unit * pixels) / 2];
    };
    [this.w, this.h] = [w, h];
    [this.X, this.Y] = [scale(false, half(x, w), [0, w]), scale(false, half(y, h), [h, 0])];
    this.svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
    this.svg.style.height = `${h}px`;
  }

  px([x, y]) { return [this.X(x), this.Y(y)]; }

  draw() {
    const { chapter, below, above, grabs, labels } = this;
    if (!this.X) return;
    for (const layer of [below, above, grabs]) layer.begin();
    labels.begin(this.w, this.h);
    const drags = chapter.drags().map((d) => [d, this.px(chapter.state.at[d.name])]);
    for (const [, [x, y]] of drags) labels.keep(x, y, 12);
    const words = [];
    this.plane.marks.forEach((mark, k) => {
      if (chapter.shows(mark)) PLANE_MARKS[mark.mark](this, mark, `${k}`, words);
    });
    for (const [drag, [x, y]] of drags) {
      this.handle(drag, x, y);
      labels.put(drag.name, drag.label, [x, y], drag.ink, 13);
    }
    for (const [, , [x, y]] of words) labels.keep(x, y, 6);
    const together = []; // what is at one point has one label
    for (const [key, text, [x, y], colour] of words) {
      const there = text && together.find((t) => Math.hypot(t.x - x, t.y - y) < 2.5);
      if (there) there.texts.push(text); else if (text) together.push({ key, texts: [text], x, y, colour });
    }
    for (const { key, texts, x, y, colour } of together) {
      const all = texts.join(" = "), text = widthOf(all) > 0.55 * this.w ? `${texts.length} as one` : all;
      labels.put(key, text, [x, y], texts.length > 1 ? "ink" : colour);
    }
    for (const layer of [below, above, grabs]) layer.end();
  }

  handle(drag, x, y) {
    const { chapter } = this, at = chapter.state.at, spoken = `${drag.spoken}: drag it, or use the arrow keys`;
    const inside = (v, scale) => Math.min(Math.max(v, Math.min(...scale.domain)), Math.max(...scale.domain));
    const to = (a, b) => {
      at[drag.name] = [inside(a, this.X), inside(b, this.Y)].map((v) => Math.round(v * 1000) / 1000);
      chapter.change();
    };
    const g = grab(this.grabs, drag.name, this.svg, spoken, {
      moved: (a, b) => to(this.X.back(a), this.Y.back(b)),
      stepped: (dx, dy) => to(at[drag.name][0] + STEP * dx, at[drag.name][1] + STEP * dy),
      done: () => chapter.done(),
    });
    const [low, high] = this.X.domain.map((v) => Number(v.toFixed(2))), now = at[drag.name][0];
    const says = { "aria-valuemin": low, "aria-valuemax": high, "aria-valuenow": now, "aria-valuetext": `${place(now)} across, ${place(at[drag.name][1])} up` };
    this.grabs.put(drag.name, "g", { transform: `translate(${near(x)},${near(y)})`, "data-name": drag.name, ...says });
    if (!g.firstChild) {
      const part = (kind, attributes) => {
        const made = document.createElementNS(SVG, kind);
        for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
        g.append(made);
      };
      part("circle", { r: 22, class: "target" });
      const pole = drag.shape === "flag"; // which is a line
      part("path", { d: OUTLINES[drag.shape](8), fill: ink(drag.ink), stroke: pole ? ink(drag.ink) : "var(--paper)", "stroke-width": 2 });
    }
  }
}

const PLANE_MARKS = {
  Valley(picture, m, key) {
    const [x, y] = picture.chapter.pointAt(m.at);
    picture.below.put(key, "path", { d: lineOf(m.outline.map(([a, b]) => picture.px([x + a, y + b]))), ...pen(m.ink, m.dash, 1.4), opacity: 0.85 });
  },
  Trail(picture, m, key, words) {
    const n = picture.chapter.state.n, all = picture.chapter.numbers.points(m.of).slice(0, n);
    const px = (m.start ? [m.start, ...all] : all).map((p) => picture.px(p.map((v) => Math.max(-1e4, Math.min(1e4, v)))));
    picture.below.put(key, "path", { d: lineOf(px), ...pen(m.ink, m.dash, 2) });
    px.slice(m.start ? 1 : 0, -1).forEach((p, i) => shape(picture.below, `${key} ${i}`, m.shape, p, m.ink, 2.5));
    shape(picture.below, `${key} end`, m.shape, px.at(-1), m.ink, 5.5);
    words.push([key, picture.chapter.filled(m.label), px.at(-1), m.ink]);
  },
  Spot(picture, m, key, words) {
    const one = (v, i) => (Array.isArray(v) ? v[i % v.length] : v);
    picture.chapter.spots(m.of).forEach((p, i) => {
      const at = picture.px(p);
      shape(picture.below, `${key} ${i}`, one(m.shape, i), at, one(m.ink, i), 5.5);
      words.push([`${key} ${i}`, picture.chapter.filled(Array.isArray(m.label) ? m.label[i] ?? "" : i ? "" : m.label), at, one(m.ink, i)]);
    });
  },
  Arrow(picture, m, key, words) {
    const tails = picture.chapter.spots(m.at), vectors = picture.chapter.spots(m.of);
    const unit = (m.length * picture.w) / (picture.X.domain[1] - picture.X.domain[0]);
    vectors.forEach(([a, b], i) => {
      const [x, y] = picture.px(tails[i]), [dx, dy] = [unit * a, -unit * b], size = Math.hypot(dx, dy), head = Math.min(9, size);
      const [ux, uy] = size ? [dx / size, dy / size] : [0, 0], [tx, ty] = [x + dx, y + dy], [bx, by] = [tx - head * ux, ty - head * uy];
      picture.below.put(`${key} ${i}`, "path", {
        d: `M${near(x)} ${near(y)}L${near(tx)} ${near(ty)}M${near(bx - 0.5 * head * uy)} ${near(by + 0.5 * head * ux)}L${near(tx)} ${near(ty)}L${near(bx + 0.5 * head * uy)} ${near(by - 0.5 * head * ux)}`,
        ...pen(m.ink[i], m.dash[i], 4),
      });
      words.push([`${key} ${i}`, m.label[i] ?? "", [tx, ty], m.ink[i]]);
    });
  },
};
