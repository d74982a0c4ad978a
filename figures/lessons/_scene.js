// A scene: its planes and charts, the table, the answer and the verdicts.

function draw() {
  const n = round() - 1;
  $("round-value").textContent = `${n + 1} of ${scene.rounds}`;
  const figures = d3.select("#figures").selectAll(":scope > figure").data([...scene.planes, ...scene.charts]);
  figures.join("figure").each(function (one) {
    const figure = d3.select(this), title = one.title || one.y_label;
    figure.selectAll("*").remove();
    if (one.title) figure.append("figcaption").text(one.title);
    const legend = add(figure, "div", { class: "legend" });
    const w = this.clientWidth, h = Math.max(300, Math.min(0.8 * w, 0.45 * innerHeight));
    const svg = add(figure, "svg", { role: "img", "aria-label": title, height: h, viewBox: `0 0 ${w} ${h}` });
    (one.kind === "Plane" ? drawPlane : drawChart)(svg, one, n, w, h, legend);
  });
  drawAnswer(scene.answer);
  drawTable(scene.table, n);
  drawVerdicts(scene.verdicts);
  $("note").textContent = scene.note;
  toAddress();
  document.body.dataset.round = n + 1;
}

function drawAnswer(answer) {
  const box = $("answer");
  box.hidden = !answer;
  if (!answer) return;
  box.textContent = answer.text;
  box.className = answer.right ? "right" : "";
  box.dataset.right = answer.right;
}

function drawTable(table, n) {
  const box = d3.select("#table");
  box.selectAll("*").remove();
  if (!table) return;
  const made = box.append("table"), head = made.append("thead").append("tr");
  for (const column of [table.first, ...table.columns]) add(head, "th", { scope: "col" }).text(column);
  for (const row of table.rows) {
    const line = made.append("tbody").append("tr");
    add(line, "th", { scope: "row" }).style("color", colour(row.colour)).text(row.label);
    row.cells.forEach((cell, k) => {
      const shown = Array.isArray(cell) ? cell[n] : cell;
      add(line, "td", { "data-column": table.columns[k] }).text(written(shown));
    });
  }
}

function drawVerdicts(verdicts) {
  const list = d3.select("#verdicts");
  list.selectAll("*").remove();
  for (const v of verdicts) {
    const p = add(list, "p", { class: "verdict" });
    p.append("span").text(`${v.label}: `);
    add(p, "b", { class: v.verdict.split(" ")[0] }).text(v.verdict);
    p.append("span").text(v.detail ? `: ${v.detail}` : "");
    p.append("br");
    p.append("small").text(`${v.source}. Claim ${v.claim} in ${v.file}`);
  }
}
