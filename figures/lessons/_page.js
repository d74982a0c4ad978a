// One page for every lesson: it asks for the scene at a position of the sliders, and draws it. It computes nothing.

const $ = (id) => document.getElementById(id);
const lesson = JSON.parse($("lesson").textContent);
let answers = null; // all scenes of an exported page, by position; null where a server answers
let scene = null; // the one that is shown
let asked = 0; // how many positions were asked for: a late answer to an older one is dropped

function written(v) {
  if (typeof v !== "number") return v;
  if (v === 0 || (Number.isInteger(v) && Math.abs(v) < 1e5)) return String(v);
  const size = Math.abs(v);
  return size < 1e-3 || size >= 1e5 ? v.toExponential(2) : String(Number(v.toPrecision(3)));
}

async function unpacked(id) { // gzip and base64
  const text = $(id).textContent;
  if (!text) return null;
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

// The sliders, and the address, which holds their values.

const position = () => lesson.sliders.map((s) => s.offered[Number($(s.name).value)]);
const round = () => Math.min(Number($("round").value), scene.rounds || 1);

function makeSliders() {
  for (const s of lesson.sliders) {
    const choice = typeof s.values[0] === "string";
    const box = d3.select("#sliders").append("div");
    add(add(box, "label", { for: s.name }).text(s.label), "output", { id: `${s.name}-value` });
    const range = { type: "range", min: 0, max: s.offered.length - 1, step: 1 };
    const input = add(box, choice ? "select" : "input", { id: s.name, ...(choice ? {} : range) });
    if (choice) s.offered.forEach((i, k) => add(input, "option", { value: k }).text(s.values[i]));
    if (s.offered.length === 1) input.attr("disabled", "");
    input.on("input", () => moveTo());
  }
  const box = add(d3.select("#sliders"), "div", { id: "rounds" });
  add(add(box, "label", { for: "round" }).text("round shown"), "output", { id: "round-value" });
  add(box, "input", { id: "round", type: "range", min: 1, max: 1e6, step: 1 }).on("input", draw);
  const buttons = add(d3.select("#sliders"), "div", { id: "buttons" });
  add(buttons, "button", { type: "button", id: "play" }).text("play").on("click", play);
  add(buttons, "button", { type: "button", id: "reset" }).text("start again").on("click", start);
}

function put(name, value) { // the offered value nearest to it
  const s = lesson.sliders.find((t) => t.name === name);
  const far = (v) => (typeof v === "string" ? Number(v !== value) : Math.abs(v - Number(value)));
  $(name).value = d3.leastIndex(s.offered, (a, b) => far(s.values[a]) - far(s.values[b]));
}

function moveTo(...values) { // pairs of a slider's name and a value
  for (const [name, value] of values) if (name) put(name, value);
  nameValues();
  ask();
}

function nameValues() {
  for (const [k, i] of position().entries()) {
    const s = lesson.sliders[k];
    const text = typeof s.values[i] === "string" ? "" : `${written(s.values[i])} ${s.unit}`.trim();
    $(`${s.name}-value`).textContent = text;
    $(s.name).setAttribute("aria-valuetext", text || s.values[i]);
  }
}

function fromAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  $("round").dataset.wanted = given.get("round") ?? "";
  moveTo(...lesson.sliders.map((s) => [s.name, given.get(s.name) ?? s.values[s.start]]));
}

function remember(address) {
  try { history.replaceState(null, "", address); } catch { /* a frame in a notebook has no address */ }
}

function start() {
  remember("#");
  $("round").dataset.wanted = $("round").dataset.used = "";
  moveTo(...lesson.sliders.map((s) => [s.name, s.values[s.start]]));
}

function toAddress() {
  const values = new URLSearchParams(position().map((i, k) => [lesson.sliders[k].name, lesson.sliders[k].values[i]]));
  if (scene.rounds) values.set("round", round());
  remember(`#${values}`);
}

let playing = null;
function play() {
  if (playing) { clearInterval(playing); playing = null; } else {
    if (round() >= scene.rounds) $("round").value = 1;
    playing = setInterval(() => {
      if (round() >= scene.rounds) return play();
      $("round").value = round() + 1;
      draw();
    }, 350);
  }
  $("play").textContent = playing ? "pause" : "play";
}

// Questions and answers. While one is computed only the latest of those that follow is kept.

let busy = false;
async function ask() {
  asked += 1;
  if (busy) return;
  busy = true;
  for (let mine = 0; mine !== asked; ) {
    mine = asked;
    const at = position().join("-");
    let found;
    try {
      found = answers ? answers[at] : await (await fetch(`${lesson.name}/scene?at=${at}`)).json();
    } catch { found = { error: "The server does not answer: start it again with python -m figures.lessons." }; }
    if (mine !== asked) continue;
    $("error").hidden = !found.error;
    $("error").textContent = found.error ?? "";
    if (found.error) continue;
    scene = found;
    document.body.dataset.at = at;
    showRounds();
    draw();
  }
  busy = false;
}

function showRounds() {
  const input = $("round"), first = input.dataset.used ? input.value : scene.shown;
  const kept = scene.rounds ? Number(input.dataset.wanted || first) : 1;
  $("rounds").hidden = $("play").hidden = !scene.rounds;
  input.max = scene.rounds || 1;
  input.value = kept;
  input.dataset.wanted = "";
  input.dataset.used = scene.rounds ? "yes" : "";
}

(async () => {
  (0, eval)(await unpacked("d3"));
  answers = JSON.parse(await unpacked("answers"));
  makeSliders();
  window.addEventListener("hashchange", fromAddress);
  new ResizeObserver(() => scene && draw()).observe(document.body.querySelector("header"));
  fromAddress();
})();
