"use strict";
// What a scene looks like. Entries that move have the rounds first.

const colour = (i) => (i === null || i === undefined ? "var(--ink)" : `var(--c${i % 8})`);
const ROLES = { error: "", certificate: "0.1 7", theorem: "9 6", limit: "2 5", bars: "", points: "" };
const ROLE_NAMES = { error: "error", certificate: "certificate", theorem: "theorem" };

function draw() {
  const n = round() - 1, figures = d3.select("#figures");
  $("round-value").textContent = `${n + 1} of ${scene.rounds}`;
  const all = [...scene.planes, ...scene.charts];
  figures.selectAll(":scope > figure").data(all).join("figure").each(function (one) {
    const figure = d3.select(this);
    figure.selectAll("*").remove();
    if (one.title) figure.append("figcaption").text(one.title);
    const legend = figure.append("div").attr("class", "legend");
    const w = this.clientWidth, h = Math.max(300, Math.min(0.8 * w, 0.45 * innerHeight));
    const svg = figure.append("svg").attr("role", "img").attr("aria-label", one.title || one.y_label).attr("height", h).attr("viewBox", `0 0 ${w} ${h}`);
    (one.kind === "Plane" ? drawPlane : drawChart)(svg, one, n, w, h, legend);
  });
  drawWords(n);
  toAddress();
  document.body.dataset.round = n + 1;
}

function entry(legend, label, ink, shape) { // one entry of a legend; shape draws into 26 x 16
  const span = legend.append("span");
  shape(span.append("svg").attr("width", 26).attr("height", 16).attr("aria-hidden", "true"), ink);
  span.append("span").text(label);
}
const stroke = (dash, width) => (svg, ink) => svg.append("line").attr("x1", 2).attr("x2", 24).attr("y1", 9).attr("y2", 9).call(pen, ink, dash, width);
const pen = (line, ink, dash, width = 3) => line.attr("fill", "none").attr("stroke", ink).attr("stroke-width", width).attr("stroke-dasharray", dash).attr("stroke-linecap", "round").attr("stroke-linejoin", "round");

function scaleOf(log, domain, range) { return (log ? d3.scaleLog() : d3.scaleLinear()).domain(domain).range(range); }

function axes(svg, X, Y, one, frame) {
  const { left, right, top, bottom, w, h } = frame;
  const many = (scale, log, room) => {
    if (!log) return scale.ticks(room);
    const decades = Math.log10(scale.domain()[1] / scale.domain()[0]), kept = decades > 2.5 ? [1] : [1, 2, 5];
    return scale.copy().ticks(room).filter((v) => kept.some((k) => Math.abs(Math.log10(v / k) - Math.round(Math.log10(v / k))) < 1e-9));
  };
  const thin = (values, most) => values.filter((_, k) => k % Math.ceil(values.length / most) === 0);
  const label = (v) => (v !== 0 && (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e5) ? d3.format(".0e")(v).replace("+", "") : String(Number(v.toPrecision(4))));
  const axis = (make, values) => make.tickValues(values).tickFormat(label).tickSizeOuter(0);
  const xs = many(X, one.log_x, Math.max(3, (w - left - right) / 90)), ys = many(Y, one.log_y, Math.max(3, (h - top - bottom) / 50));
  const xt = thin(xs.length > 1 ? xs : X.ticks(3), 9), yt = thin(ys.length > 1 ? ys : Y.ticks(3), 8);
  svg.append("g").attr("class", "grid").attr("transform", `translate(${left},0)`).call(axis(d3.axisLeft(Y).tickSize(-(w - left - right)), yt)).call((g) => g.selectAll("text,path").remove());
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${h - bottom})`).call(axis(d3.axisBottom(X), xt));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${left},0)`).call(axis(d3.axisLeft(Y), yt));
  svg.append("text").attr("x", (left + w - right) / 2).attr("y", h - 8).attr("text-anchor", "middle").text(one.x_label);
  svg.append("text").attr("transform", `translate(14,${(top + h - bottom) / 2}) rotate(-90)`).attr("text-anchor", "middle").text(one.y_label);
}

function clipped(svg, frame) {
  const id = `clip-${d3.selectAll("clipPath").size()}`, { left, right, top, bottom, w, h } = frame;
  svg.append("clipPath").attr("id", id).append("rect").attr("x", left).attr("y", top).attr("width", w - left - right).attr("height", h - top - bottom);
  return svg.append("g").attr("clip-path", `url(#${id})`);
}

function drawChart(svg, chart, n, w, h, legend) {
  const frame = { left: 84, right: 14, top: 10, bottom: 52, w, h };
  const seen = (v, log) => Number.isFinite(v) && (!log || v > 0);
  const xs = chart.curves.flatMap((c) => c.x).filter((v) => seen(v, chart.log_x)).concat(chart.marks.map((m) => m[0]));
  const ys = chart.curves.flatMap((c) => c.y.flat()).filter((v) => seen(v, chart.log_y));
  const top = d3.max(ys), low = chart.log_y ? Math.max(d3.min(ys), 1e-16 * top) : Math.min(0, d3.min(ys));
  const bars = chart.curves.some((c) => c.role === "bars");
  const [x0, x1] = d3.extent(xs), X = scaleOf(chart.log_x, bars ? [x0 - 0.5, x1 + 0.5] : [x0, x1], [frame.left + 8, w - frame.right - 8]);
  const Y = scaleOf(chart.log_y, chart.y_range ?? [low, top > low ? top : low + 1], [h - frame.bottom - 6, frame.top + 6]);
  if (!chart.y_range && !chart.log_y) Y.nice();
  axes(svg, X, Y, chart, frame);
  const room = clipped(svg, frame), labels = new Map();
  const vertical = (x, dash) => room.append("line").attr("x1", X(x)).attr("x2", X(x)).attr("y1", frame.top).attr("y2", h - frame.bottom).call(pen, "var(--ink)", dash, 1.5);
  if (chart.rounds) vertical(n + 1, "2 5");
  for (const [x, text] of chart.marks) {
    vertical(x, "6 5");
    const late = X(x) > w / 2;
    svg.append("text").attr("x", X(x) + (late ? -6 : 6)).attr("y", frame.top + 16).attr("text-anchor", late ? "end" : "start").text(text);
  }
  chart.curves.forEach((c, k) => {
    const y = c.moving ? c.y[n] : c.y, ink = colour(c.colour);
    const points = d3.zip(c.x, y).filter((p) => seen(p[0], chart.log_x) && seen(p[1], chart.log_y));
    if (c.role === "bars") {
      const wide = Math.max(2, (0.8 * (w - frame.left - frame.right)) / (x1 - x0 + 1)), base = Y(Y.domain()[0] <= 0 ? 0 : Y.domain()[0]);
      room.selectAll(`.bars${k}`).data(points).join("rect").attr("x", (p) => X(p[0]) - wide / 2).attr("width", wide).attr("y", (p) => Math.min(base, Y(p[1]))).attr("height", (p) => Math.abs(base - Y(p[1]))).attr("fill", ink).attr("opacity", 0.75);
    } else if (c.role === "certificate") {
      room.append("g").attr("fill", "none").attr("stroke", ink).attr("stroke-width", 1.5).selectAll("circle").data(points).join("circle").attr("cx", (p) => X(p[0])).attr("cy", (p) => Y(p[1])).attr("r", 3.5);
    } else if (c.role === "points") {
      room.append("g").attr("fill", ink).attr("stroke", "var(--paper)").attr("stroke-width", 1.5).selectAll("circle").data(points).join("circle").attr("cx", (p) => X(p[0])).attr("cy", (p) => Y(p[1])).attr("r", 8);
    } else room.append("path").datum(points).attr("d", d3.line((p) => X(p[0]), (p) => Y(p[1]))).call(pen, ink, ROLES[c.role], c.role === "error" ? 3.5 : 2.2);
    if (!labels.has(c.label)) labels.set(c.label, c);
  });
  const disc = (svg, ink) => svg.append("circle").attr("cx", 13).attr("cy", 9).attr("r", 7).attr("fill", ink);
  for (const [label, c] of labels) entry(legend, label, colour(c.colour), c.role === "points" ? disc : stroke(c.role === "error" ? "" : ROLES[c.role], c.role === "limit" ? 3 : 5));
  for (const role of new Set(chart.curves.map((c) => c.role))) {
    if (role === "certificate") entry(legend, "certificate", "var(--soft)", (s, ink) => s.append("circle").attr("cx", 13).attr("cy", 9).attr("r", 4).call(pen, ink, "", 1.5));
    else if (role in ROLE_NAMES && chart.curves.some((c) => c.role === "certificate")) entry(legend, ROLE_NAMES[role], "var(--soft)", stroke(ROLES[role], 3));
  }
}

const SHAPES = {
  disc: (g, r) => g.append("circle").attr("r", r).attr("stroke", "var(--paper)").attr("stroke-width", 1.5),
  ring: (g, r) => g.append("circle").attr("r", r).style("fill", "none").attr("stroke", "currentColor").attr("stroke-width", 2.5),
  cross: (g, r) => g.append("path").attr("d", `M${-r - 3} 0H${r + 3}M0 ${-r - 3}V${r + 3}`).attr("stroke", "currentColor").attr("stroke-width", 3.5),
  star: (g, r) => g.append("path").attr("d", d3.symbol(d3.symbolStar, 20 * r)()),
};

function drawPlane(svg, plane, n, w, h, legend) {
  const axed = plane.x_label || plane.y_label, frame = axed ? { left: 84, right: 14, top: 10, bottom: 52, w, h } : { left: 2, right: 2, top: 2, bottom: 2, w, h };
  let [x, y] = [plane.x, plane.y];
  if (plane.equal) { // widen one of the ranges
    const unit = Math.max((x[1] - x[0]) / (w - frame.left - frame.right), (y[1] - y[0]) / (h - frame.top - frame.bottom));
    const wide = (range, pixels) => [d3.mean(range) - (unit * pixels) / 2, d3.mean(range) + (unit * pixels) / 2];
    [x, y] = [wide(x, w - frame.left - frame.right), wide(y, h - frame.top - frame.bottom)];
  }
  const X = scaleOf(plane.log_x, x, [frame.left, w - frame.right]), Y = scaleOf(plane.log_y, y, [h - frame.bottom, frame.top]);
  if (axed) axes(svg, X, Y, plane, frame);
  else svg.append("rect").attr("x", 1).attr("y", 1).attr("width", w - 2).attr("height", h - 2).attr("fill", "none").attr("stroke", "var(--grid)");
  const room = clipped(svg, frame), px = (p) => [X(p[0]), Y(p[1])], line = d3.line((p) => X(p[0]), (p) => Y(p[1]));
  const now = (a) => (Array.isArray(a[0][0]) ? a[Math.min(n, a.length - 1)] : a), ink = (c, k) => colour(Array.isArray(c) ? c[k] : c);
  const draws = {
    Path: (m) => {
      room.append("path").attr("d", line(m.points.slice(0, n + 1))).call(pen, colour(m.colour), m.dashed ? "6 5" : "", 2.5);
      if (m.label) entry(legend, m.label, colour(m.colour), stroke(m.dashed ? "6 5" : "", 2.5));
    },
    Dots: (m) => {
      now(m.points).forEach((p, k) => SHAPES[m.shape](room.append("g").attr("transform", `translate(${px(p)})`).attr("fill", ink(m.colours, k)).style("color", ink(m.colours, k)), 7));
      if (m.label) entry(legend, m.label, ink(m.colours, 0), (s, i) => SHAPES[m.shape](s.append("g").attr("transform", "translate(13,9)").attr("fill", i).style("color", i), 5));
    },
    Arrows: (m) => {
      const tails = now(m.tails), vectors = now(m.vectors), longest = d3.max(vectors, (v) => Math.hypot(...v)) || 1;
      vectors.forEach((v, k) => arrow(room, px(tails[k]), [(v[0] / longest) * m.length * w, (-v[1] / longest) * m.length * w], ink(m.colours, k)));
      if (m.label) entry(legend, m.label, ink(m.colours, 0), (s, i) => arrow(s, [3, 9], [20, 0], i));
    },
    Lines: (m) => {
      for (const points of m.lines) room.append("path").attr("d", line(points)).call(pen, colour(m.colour), "", m.faint ? 1.3 : 2.5).attr("opacity", m.faint ? 0.5 : 1);
      if (m.label) entry(legend, m.label, colour(m.colour), stroke("", m.faint ? 1.3 : 2.5));
    },
    Text: (m) => room.append("text").attr("x", X(m.at[0])).attr("y", Y(m.at[1])).style("fill", colour(m.colour)).text(m.text),
    Cells: (m) => drawCells(room, m, X, Y, legend),
    Handle: (m) => drawHandle(room, m, X, Y, px(m.at), legend),
  };
  for (const mark of plane.marks) draws[mark.kind](mark);
}

function arrow(g, [x, y], [dx, dy], ink) {
  const size = Math.hypot(dx, dy), [ux, uy] = size ? [dx / size, dy / size] : [0, 0], head = Math.min(10, size);
  const [tx, ty] = [x + dx, y + dy], [bx, by] = [tx - head * ux, ty - head * uy];
  g.append("line").attr("x1", x).attr("y1", y).attr("x2", bx).attr("y2", by).call(pen, ink, "", 3.5);
  g.append("path").attr("d", `M${tx} ${ty}L${bx - 0.55 * head * uy} ${by + 0.55 * head * ux}L${bx + 0.55 * head * uy} ${by - 0.55 * head * ux}Z`).attr("fill", ink);
}

function drawCells(room, m, X, Y, legend) {
  const edges = (values, scale) => { const p = values.map(scale), mid = d3.pairs(p, (a, b) => (a + b) / 2); return [2 * p[0] - mid[0], ...mid, 2 * p.at(-1) - mid.at(-1)]; };
  const ex = edges(m.x, X), ey = edges(m.y, Y);
  m.classes.forEach((row, i) => row.forEach((c, k) => {
    const cell = room.append("rect").attr("x", Math.min(ex[k], ex[k + 1])).attr("y", Math.min(ey[i], ey[i + 1])).attr("width", Math.abs(ex[k + 1] - ex[k]) + 0.5).attr("height", Math.abs(ey[i + 1] - ey[i]) + 0.5).attr("fill", colour(m.colours[c])).attr("opacity", 0.55);
    if (m.on_x || m.on_y) cell.style("cursor", "pointer").on("click", () => { if (m.on_x) put(m.on_x, m.x[k]); if (m.on_y) put(m.on_y, m.y[i]); nameValues(); ask(); });
  }));
  m.names.forEach((name, c) => entry(legend, name, colour(m.colours[c]), (s, ink) => s.append("rect").attr("x", 4).attr("y", 1).attr("width", 18).attr("height", 15).attr("fill", ink).attr("opacity", 0.55)));
}

function drawHandle(room, m, X, Y, [x, y], legend) { // 44 px to grab; the arrow keys move it too
  const g = room.append("g").attr("class", "handle").attr("id", `handle-${m.x}-${m.y}`).attr("transform", `translate(${x},${y})`).attr("tabindex", 0).attr("role", "application").attr("aria-label", `${m.label || m.x}: drag, or use the arrow keys`);
  g.append("circle").attr("r", 22).attr("fill", colour(m.colour)).attr("opacity", 0.15);
  g.append("circle").attr("r", 9).attr("fill", colour(m.colour)).attr("stroke", "var(--paper)").attr("stroke-width", 2);
  if (m.label) entry(legend, m.label, colour(m.colour), (s, ink) => s.append("circle").attr("cx", 13).attr("cy", 9).attr("r", 7).attr("fill", ink));
  const moved = () => { nameValues(); ask(); };
  const to = (event) => { const [a, b] = d3.pointer(event, room.node()); put(m.x, X.invert(a)); put(m.y, Y.invert(b)); moved(); };
  g.on("pointerdown", (event) => {
    event.preventDefault();
    d3.select(window).on("pointermove.drag", to).on("pointerup.drag pointercancel.drag", () => d3.select(window).on(".drag", null));
  });
  g.on("keydown", (event) => {
    const step = { ArrowLeft: [m.x, -1], ArrowRight: [m.x, 1], ArrowDown: [m.y, -1], ArrowUp: [m.y, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    $(step[0]).value = Math.max(0, Number($(step[0]).value) + step[1]);
    moved();
    const id = g.attr("id"), again = new MutationObserver(() => { $(id)?.focus(); again.disconnect(); });
    again.observe(document.body, { attributes: true, attributeFilter: ["data-at"] });
  });
}

function drawWords(n) {
  const { table, answer, verdicts, note } = scene;
  $("answer").hidden = !answer;
  if (answer) { $("answer").textContent = answer.text; $("answer").className = answer.right ? "right" : ""; $("answer").dataset.right = answer.right; }
  const box = d3.select("#table");
  box.selectAll("*").remove();
  if (table) {
    const made = box.append("table"), head = made.append("thead").append("tr");
    head.selectAll("th").data([table.first, ...table.columns]).join("th").attr("scope", "col").text(String);
    for (const row of table.rows) {
      const line = made.append("tbody").append("tr");
      line.append("th").attr("scope", "row").style("color", colour(row.colour)).text(row.label);
      row.cells.forEach((cell, k) => line.append("td").attr("data-column", table.columns[k]).text(written(Array.isArray(cell) ? cell[n] : cell)));
    }
  }
  const list = d3.select("#verdicts");
  list.selectAll("*").remove();
  for (const v of verdicts) {
    const p = list.append("p").attr("class", "verdict");
    p.append("span").text(`${v.label}: `);
    p.append("b").attr("class", v.verdict.split(" ")[0]).text(v.verdict);
    p.append("span").text(v.detail ? `: ${v.detail}` : "");
    p.append("br");
    p.append("small").text(`${v.source}. Claim ${v.claim} in ${v.file}`);
  }
  $("note").textContent = note;
}
