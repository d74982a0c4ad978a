"use strict";
// What charts, planes and legends share. Attributes are written as objects: add(parent, "line", { x1: 0, ... }).

const add = (parent, kind, attributes = {}) => {
  const made = parent.append(kind);
  for (const [name, value] of Object.entries(attributes)) made.attr(name, value);
  return made;
};
const colour = (i) => (i === null || i === undefined ? "var(--ink)" : `var(--c${i % 8})`);
const joined = { "stroke-linecap": "round", "stroke-linejoin": "round" };
const pen = (ink, dash = "", width = 3) =>
  ({ fill: "none", stroke: ink, "stroke-width": width, "stroke-dasharray": dash, ...joined });
const scaleOf = (log, domain, range) => (log ? d3.scaleLog() : d3.scaleLinear()).domain(domain).range(range);

const SHAPES = {
  disc: (g, r) => add(g, "circle", { r, stroke: "var(--paper)", "stroke-width": 1.5 }),
  ring: (g, r) => add(g, "circle", { r, stroke: "currentColor", "stroke-width": 2.5 }).style("fill", "none"),
  cross: (g, r) =>
    add(g, "path", { d: `M${-r - 3} 0H${r + 3}M0 ${-r - 3}V${r + 3}`, stroke: "currentColor", "stroke-width": 3.5 }),
  star: (g, r) => add(g, "path", { d: d3.symbol(d3.symbolStar, 20 * r)() }),
};

// An entry of a legend: a shape, which draws into 26 x 16, and words.
function entry(legend, label, ink, shape) {
  const span = legend.append("span");
  shape(add(span, "svg", { width: 26, height: 16, "aria-hidden": "true" }), ink);
  span.append("span").text(label);
}
const stroke = (dash, width) => (svg, ink) =>
  add(svg, "line", { x1: 2, x2: 24, y1: 9, y2: 9, ...pen(ink, dash, width) });
const disc = (r) => (svg, ink) => add(svg, "circle", { cx: 13, cy: 9, r, fill: ink });

function arrow(g, [x, y], [dx, dy], ink) {
  const size = Math.hypot(dx, dy), [ux, uy] = size ? [dx / size, dy / size] : [0, 0];
  const head = Math.min(10, size), [tx, ty] = [x + dx, y + dy], [bx, by] = [tx - head * ux, ty - head * uy];
  const [wx, wy] = [0.55 * head * uy, 0.55 * head * ux]; // half of the head's width
  add(g, "line", { x1: x, y1: y, x2: bx, y2: by, ...pen(ink, "", 3.5) });
  add(g, "path", { d: `M${tx} ${ty}L${bx - wx} ${by + wy}L${bx + wx} ${by - wy}Z`, fill: ink });
}

// A part of a figure that hides what leaves its frame.
function clipped(svg, { left, right, top, bottom, w, h }) {
  const id = `clip-${d3.selectAll("clipPath").size()}`;
  add(add(svg, "clipPath", { id }), "rect", { x: left, y: top, width: w - left - right, height: h - top - bottom });
  return add(svg, "g", { "clip-path": `url(#${id})` });
}

// Ticks: on a logarithmic axis powers of ten, with 2 and 5 where there is room.
function ticks(scale, log, room, most) {
  const decades = Math.log10(scale.domain()[1] / scale.domain()[0]), factors = decades > 2.5 ? [1] : [1, 2, 5];
  const whole = (v) => Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9;
  const all = log ? scale.copy().ticks(room).filter((v) => factors.some((k) => whole(v / k))) : scale.ticks(room);
  const enough = all.length > 1 ? all : scale.ticks(3);
  return enough.filter((_, k) => k % Math.ceil(enough.length / most) === 0);
}

function tickLabel(v) {
  const far = v !== 0 && (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e5);
  return far ? d3.format(".0e")(v).replace("+", "") : String(Number(v.toPrecision(4)));
}

function axes(svg, X, Y, one, { left, right, top, bottom, w, h }) {
  const wide = w - left - right, high = h - top - bottom;
  const xt = ticks(X, one.log_x, Math.max(3, wide / 90), 9), yt = ticks(Y, one.log_y, Math.max(3, high / 50), 8);
  const axis = (make, values) => make.tickValues(values).tickFormat(tickLabel).tickSizeOuter(0);
  const grid = add(svg, "g", { class: "grid", transform: `translate(${left},0)` });
  grid.call(axis(d3.axisLeft(Y).tickSize(-wide), yt)).selectAll("text,path").remove();
  add(svg, "g", { class: "axis", transform: `translate(0,${h - bottom})` }).call(axis(d3.axisBottom(X), xt));
  add(svg, "g", { class: "axis", transform: `translate(${left},0)` }).call(axis(d3.axisLeft(Y), yt));
  const middle = { "text-anchor": "middle" };
  add(svg, "text", { x: (left + w - right) / 2, y: h - 8, ...middle }).text(one.x_label);
  add(svg, "text", { transform: `translate(14,${(top + h - bottom) / 2}) rotate(-90)`, ...middle }).text(one.y_label);
}
