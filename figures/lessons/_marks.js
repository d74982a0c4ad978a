// Marks: elements of a picture that stay and move, shapes, and labels that find room.

const SVG = "http://www.w3.org/2000/svg";

// A group whose elements have names: what is put again in a frame changes, what is not goes.
class Layer {
  constructor(parent, attributes = {}) {
    this.node = document.createElementNS(SVG, "g");
    this.kept = new Map();
    for (const [name, value] of Object.entries(attributes)) this.node.setAttribute(name, value);
    parent.append(this.node);
  }
  begin() { this.seen = new Set(); }
  put(key, kind, attributes, text) {
    let one = this.kept.get(key);
    if (one && one.kind !== kind) { one.node.remove(); one = undefined; }
    if (!one) {
      one = { kind, node: document.createElementNS(SVG, kind), was: {} };
      this.kept.set(key, one);
      this.node.append(one.node);
    }
    this.seen.add(key);
    for (const name in attributes) {
      const value = String(attributes[name]);
      if (one.was[name] !== value) one.node.setAttribute(name, one.was[name] = value);
    }
    if (text !== undefined && one.text !== text) one.node.textContent = one.text = text;
    return one.node;
  }
  end() {
    for (const [key, one] of this.kept) if (!this.seen.has(key)) { one.node.remove(); this.kept.delete(key); }
  }
}

const ink = (name) => `var(--${name})`;
const near = (v) => Math.round(v * 100) / 100; // of a pixel
const lineOf = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${near(x)} ${near(y)}`).join("");
const DASHES = { // what tells lines apart where colours do not
  solid: "", dashed: "10 6", dotted: "1 5.5", "dash-dot": "11 5 1 5", "dash-dot-dot": "11 5 1 5 1 5", fine: "4 4",
};
const pen = (colour, dash = "solid", width = 2.5) => ({
  fill: "none", stroke: ink(colour), "stroke-width": width, "stroke-dasharray": DASHES[dash], "stroke-linecap": width >= 4 ? "butt" : "round", "stroke-linejoin": "round",
});

const OUTLINES = { // around the origin, for the radius r
  square: (r) => `M${-r} ${-r}H${r}V${r}H${-r}Z`,
  diamond: (r) => `M0 ${-1.35 * r}L${1.35 * r} 0L0 ${1.35 * r}L${-1.35 * r} 0Z`,
  triangle: (r) => `M0 ${-1.3 * r}L${1.25 * r} ${0.9 * r}H${-1.25 * r}Z`,
  disc: (r) => `M${-r} 0A${r} ${r} 0 1 1 ${r} 0A${r} ${r} 0 1 1 ${-r} 0Z`,
  cross: (r) => `M${-r - 2} 0H${r + 2}M0 ${-r - 2}V${r + 2}`,
  flag: (r) => `M0 0V${-3 * r}L${2.2 * r} ${-2.2 * r}L0 ${-1.4 * r}`,
  star: (r) => `M${[...Array(10).keys()].map((i) => {
    const [a, l] = [(i * Math.PI) / 5, (i % 2 ? 0.62 : 1.5) * r];
    return `${near(l * Math.sin(a))} ${near(-l * Math.cos(a))}`;
  }).join("L")}Z`,
};
function shape(layer, key, kind, [x, y], colour, r = 6) {
  const open = kind.startsWith("open ") || kind === "cross", stroke = open ? ink(colour) : "var(--paper)";
  layer.put(key, "path", {
    d: OUTLINES[kind.replace("open ", "")](r), transform: `translate(${near(x)},${near(y)})`,
    fill: open ? "none" : ink(colour), stroke, "stroke-width": open ? 3 : 1.5,
  });
}

const ruler = document.createElement("canvas").getContext("2d");
const widths = new Map();
function widthOf(text) {
  if (!widths.has(text)) {
    ruler.font = "15px system-ui, 'Segoe UI', 'Liberation Sans', sans-serif";
    widths.set(text, ruler.measureText(text).width);
  }
  return widths.get(text);
}

const ROOM = 5, NEAR = 8; // pixels between two labels; how many places of a label are next to its point
// Words beside points. Each takes the first place that is free, its old one if it can.
class Labels {
  constructor(layer) { this.layer = layer; this.old = {}; }
  begin(w, h) { [this.w, this.h, this.taken] = [w, h, []]; }
  keep(x, y, r) { const d = r - ROOM; this.taken.push([x - d, y - d, x + d, y + d]); }
  put(key, text, [x, y], colour, gap = 11) {
    if (!text || x < -2 || y < -2 || x > this.w + 2 || y > this.h + 2) return;
    const wide = widthOf(text), high = 18, boxes = gap ? [] : [[x - wide / 2, y - high / 2]];
    for (const far of [gap, gap + 14, gap + 30]) {
      boxes.push([x + far, y - high / 2], [x - far - wide, y - high / 2], [x - wide / 2, y - far - high], [x - wide / 2, y + far]);
      boxes.push([x + far, y - high - far / 2], [x + far, y + far / 2], [x - far - wide, y + far / 2], [x - far - wide, y - high - far / 2]);
    }
    const free = ([a, b]) => a >= 1 && b >= 1 && a + wide <= this.w - 1 && b + high <= this.h - 1
      && !this.taken.some(([p, q, r, s]) => a - ROOM < r && a + wide + ROOM > p && b < s && b + high > q);
    const was = this.old[key], k = was !== undefined && free(boxes[was]) ? was : boxes.findIndex(free);
    this.old[key] = k < 0 ? undefined : k;
    const [a, b] = k < 0 ? [Math.max(1, Math.min(this.w - wide - 1, boxes[0][0])), Math.max(1, Math.min(this.h - high, boxes[0][1]))] : boxes[k];
    this.taken.push([a, b, a + wide, b + high]);
    if (gap && (k < 0 || k >= NEAR)) { // far from its point
      const [p, q] = [Math.max(a, Math.min(x, a + wide)), Math.max(b, Math.min(y, b + high))];
      this.layer.put(`tie ${key}`, "line", { x1: near(x), y1: near(y), x2: near(p), y2: near(q), stroke: ink(colour), "stroke-width": 1 });
    }
    this.layer.put(`label ${key}`, "text", { x: near(a), y: near(b + 14), class: "label", fill: ink(colour) }, text);
  }
}

// Scales and their ticks.
function scale(log, [d0, d1], [r0, r1]) {
  const f = log ? Math.log10 : (v) => v, back = log ? (v) => 10 ** v : (v) => v, k = (r1 - r0) / (f(d1) - f(d0));
  const to = (v) => r0 + k * (f(v) - f(d0));
  to.back = (p) => back(f(d0) + (p - r0) / k);
  to.domain = [d0, d1];
  to.log = log;
  return to;
}
function ticks({ domain: [low, high], log }, most) {
  if (!log) {
    const rough = (high - low) / most, unit = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * unit).find((s) => s >= rough);
    return Array.from({ length: Math.floor(high / step + 1e-9) - Math.ceil(low / step - 1e-9) + 1 }, (_, i) => (Math.ceil(low / step - 1e-9) + i) * step);
  }
  const [a, b] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  if (b - a < 2) {
    const fine = [1, 2, 5].flatMap((k) => [a - 1, a, b].map((e) => k * 10 ** e));
    return [...new Set(fine)].filter((v) => v >= low * 0.999 && v <= high * 1.001).sort((p, q) => p - q);
  }
  const every = Math.ceil((b - a + 1) / most);
  return Array.from({ length: Math.floor((b - a) / every) + 1 }, (_, i) => 10 ** (a + i * every));
}
const tickText = (v) => {
  const far = v !== 0 && (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e5);
  return (far ? v.toExponential(0) : String(Number(v.toPrecision(4)))).replace("e+", "e").replaceAll("-", "−");
};
function axes(layer, X, Y, labels, { left, right, top, bottom, w, h }) {
  const middle = { "text-anchor": "middle" };
  for (const v of ticks(Y, Math.max(3, (h - top - bottom) / 48))) {
    layer.put(`y ${v}`, "line", { x1: left, x2: w - right, y1: near(Y(v)), y2: near(Y(v)), class: "grid" });
    layer.put(`yt ${v}`, "text", { x: left - 8, y: near(Y(v) + 5), "text-anchor": "end", class: "tick" }, tickText(v));
  }
  for (const v of ticks(X, Math.max(3, (w - left - right) / 80))) {
    layer.put(`x ${v}`, "line", { x1: near(X(v)), x2: near(X(v)), y1: h - bottom, y2: h - bottom + 5, class: "axis" });
    layer.put(`xt ${v}`, "text", { x: near(X(v)), y: h - bottom + 20, ...middle, class: "tick" }, tickText(v));
  }
  layer.put("axis", "path", { d: `M${left} ${top}V${h - bottom}H${w - right}`, class: "axis", fill: "none" });
  layer.put("x label", "text", { x: (left + w - right) / 2, y: h - 6, ...middle, class: "tick" }, labels[0]);
  layer.put("y label", "text", { x: 4, y: 14, class: "tick" }, labels[1]);
}

// What is grabbed: 44 pixels, by pointer and by keys. ``moved(x, y)`` gets pixels of the picture, ``stepped(dx, dy)`` keys.
function grab(layer, key, svg, label, { moved, stepped, done }) {
  const fresh = !layer.kept.has(key);
  const g = layer.put(key, "g", { class: "grab", tabindex: 0, role: "slider", "aria-label": label });
  if (!fresh) return g;
  const at = (event) => {
    const box = svg.getBoundingClientRect();
    moved(event.clientX - box.left, event.clientY - box.top);
  };
  g.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    g.focus({ preventScroll: true });
    g.setPointerCapture(event.pointerId);
    g.classList.add("held");
  });
  g.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false }); // a finger drags, and does not scroll
  g.addEventListener("pointermove", (event) => g.hasPointerCapture(event.pointerId) && at(event));
  for (const kind of ["pointerup", "pointercancel"]) {
    g.addEventListener(kind, () => { if (g.classList.contains("held")) { g.classList.remove("held"); done(); } });
  }
  g.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] }[event.key];
    if (!way) return;
    event.preventDefault();
    stepped(...way.map((v) => v * (event.shiftKey ? 10 : 1)));
    done();
  });
  return g;
}
