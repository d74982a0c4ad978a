// A chapter: what the reader did, and what follows of it on the page.

const COMPARED = { "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b, "=": (a, b) => a === b, none: (a) => Number.isNaN(a) };

class Chapter {
  constructor(section, described, buffer, page) {
    [this.section, this.described, this.page, this.ask] = [section, described, page, described.ask];
    this.numbers = new Numbers(described.numbers, buffer);
    this.sliders = Object.fromEntries(described.sliders.map((s) => [s.name, s]));
    this.numbers.values = Object.fromEntries(described.sliders.map((s) => [s.name, s.values]));
    this.state = this.start();
    this.box = [...section.querySelectorAll("[data-now]")].map((e) => [e, e.dataset.now]);
    this.pictures = [];
    for (const figure of section.querySelectorAll("figure")) {
      const { kind, part } = figure.dataset;
      this.pictures.push(new { plane: PlanePicture, chart: ChartPicture, map: MapPicture }[kind](figure, this, described[part]));
    }
    this.listen();
    this.change();
  }

  $(selector) { return this.section.querySelector(selector); }

  start() {
    const { drags, sliders, shown } = this.described, ask = this.ask;
    const at = Object.fromEntries(drags.map((d) => [d.name, [...d.start]]));
    if (ask.kind === "point") at.guess = [...ask.start];
    return { at, pick: Object.fromEntries(sliders.map((s) => [s.name, s.start])), n: shown, shown: false, guess: this.firstGuess() };
  }

  firstGuess() {
    if (this.ask.kind === "number") return this.ask.start;
    if (this.ask.kind === "choice") return -1;
    return this.ask.kind === "curve" ? this.ask.knots.map((_, k) => this.ask.start[k]) : 0;
  }

  shown() { return this.state.shown; }
  shows(part) { return part.after === null || part.after === undefined || part.after === this.state.shown; }

  drags() {
    const own = this.described.drags.filter((d) => this.shows(d));
    return this.ask.kind === "point" ? [...own, { name: "guess", label: "your flag", spoken: "your flag", ink: "guess", shape: "flag" }] : own;
  }

  // Where things are.
  pointAt(name) { return this.state.at[name] ?? this.numbers.points(name, true)[0]; }
  spots(name) { return this.state.at[name] ? [this.state.at[name]] : this.numbers.points(name, true); }

  value(name) {
    if (typeof name === "number") return name;
    if (name === "n") return this.state.n;
    if (name in this.sliders) return this.sliders[name].values[this.state.pick[name]];
    return this.numbers.entry(name)[0];
  }

  holds(where) { return where.every(({ left, sign, right }) => COMPARED[sign](this.value(left), this.value(right))); }

  // A text with numbers in place of {names}.
  filled(text) {
    return text.replace(/\{([^}]+)\}/g, (_, key) => {
      const [name, entry] = key.split(".");
      if (name === "n") return String(this.state.n);
      if (this.state.at[name]) return pointOf(this.state.at[name]);
      if (name in this.sliders) {
        const s = this.sliders[name], k = this.state.pick[name];
        return s.says.length ? s.says[k] : written(s.values[k]);
      }
      const point = this.described.points.includes(name), all = this.numbers.entry(name), i = Number(entry ?? 0);
      return point ? pointOf([all[2 * i], all[2 * i + 1]]) : written(all[i]);
    });
  }

  // Something moved. Everything that is shown is drawn again in the next frame.
  change() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }
  done() { this.page.remember(this); } // for the address and Back

  draw() {
    const { state, described, numbers } = this;
    const coordinates = described.drags.flatMap((d) => state.at[d.name]);
    numbers.move(coordinates, state.pick, state.n);
    this.judged = described.theorems.map((t, k) => judge(t, numbers, k));
    for (const picture of this.pictures) picture.draw();
    for (const [e, text] of this.box) e.textContent = this.filled(text);
    this.controls();
    const said = described.said.filter((s) => this.shows(s) && this.holds(s.where)).map((s) => this.filled(s.text));
    const verdict = this.verdicts();
    this.sentence = [...(state.shown ? [this.compare()] : []), ...said].filter(Boolean).join(" ");
    this.$(".sentence").textContent = this.sentence;
    this.page.say(this, `${this.sentence} ${verdict}`);
    this.section.dataset.drawn = String(Number(this.section.dataset.drawn ?? 0) + 1);
  }

  verdicts() {
    const all = this.described.theorems.map((t, k) => [t, this.judged[k], this.$(`[data-theorem="${k}"]`)]);
    return all.filter(([t]) => this.shows(t)).map(([theorem, j, e]) => {
      const sizes = j.n === undefined || !Number.isFinite(j.lhs) ? "" : `${theorem.quantity} is ${written(j.lhs)}, the bound ${written(j.rhs)}${theorem.rounds ? `, in round ${j.n}` : ""}`;
      const why = { "outside assumptions": `it asks for ${j.why}`, violated: theorem.rounds ? `${sizes}, the first where it fails` : sizes, vacuous: `true, but no better than what is known without it`, holds: sizes && theorem.rounds ? `${sizes}, where least room is left` : sizes }[j.verdict];
      const text = `${theorem.label}: ${j.verdict}${why ? ` (${why})` : ""}.`;
      e.querySelector(".verdict").textContent = j.verdict;
      e.querySelector(".verdict").dataset.is = j.verdict.split(" ")[0];
      e.querySelector(".why").textContent = why ? `: ${why}.` : ".";
      return text;
    }).join(" ");
  }

  controls() {
    const { state, section, described } = this;
    section.classList.toggle("shown", state.shown);
    for (const e of section.querySelectorAll("[data-after]")) e.hidden = e.dataset.after !== String(state.shown);
    for (const s of described.sliders) {
      const input = this.$(`[name="${s.name}"]`), k = state.pick[s.name], text = s.says.length ? s.says[k] : written(s.values[k]);
      if (input.type === "range") {
        input.value = k;
        input.setAttribute("aria-valuetext", text);
        input.parentNode.querySelector("output").textContent = text;
      } else for (const radio of section.querySelectorAll(`[data-slider="${s.name}"] input`)) radio.checked = Number(radio.value) === k;
    }
    const rounds = this.$('[name="round"]');
    if (rounds) {
      rounds.value = state.n;
      rounds.setAttribute("aria-valuetext", `${state.n} of ${described.rounds}`);
      rounds.parentNode.querySelector("output").textContent = String(state.n);
    }
    const number = this.$('[name="guess"]');
    if (number && document.activeElement !== number) number.value = state.guess;
    for (const radio of section.querySelectorAll('[name$="option"]')) radio.checked = Number(radio.value) === state.guess;
    const ready = this.ask.kind !== "choice" || state.guess >= 0;
    this.$(".reveal").disabled = !ready;
  }

  compare() { // the guess with the answer
    const { ask, state } = this;
    if (ask.kind === "number") return `You guessed ${written(state.guess)}; it is ${written(this.value(ask.answer))}.`;
    if (ask.kind === "choice") {
      const right = typeof ask.answer === "number" ? ask.answer : this.value(ask.answer);
      const is = ask.options[right] ? `it is: ${ask.options[right]}` : "none of them";
      return state.guess === right ? `You chose “${ask.options[right]}”, and so it is.` : `You chose “${ask.options[state.guess]}”; ${is}.`;
    }
    if (ask.kind === "point") {
      const [a, b] = this.pointAt(ask.answer), [x, y] = state.at.guess;
      return `Your flag is ${written(Math.hypot(a - x, b - y))} away from the answer.`;
    }
    const all = this.numbers.all(ask.answer), low = this.pictures.find((p) => p.chart === this.described.chart).Y.domain[0]; // of the chart: below it nothing is seen
    const off = ask.knots.map((n, k) => Math.abs(Math.log10(state.guess[k] / Math.max(low, all[n - 1]))));
    const worst = off.indexOf(Math.max(...off));
    return `Your curve is off by a factor of ${written(10 ** off[worst])} at round ${ask.knots[worst]}, where it is farthest.`;
  }

  listen() {
    const { section, state } = this;
    for (const s of this.described.sliders) {
      for (const input of section.querySelectorAll(`[data-slider="${s.name}"] input`)) {
        input.addEventListener("input", () => { this.state.pick[s.name] = Number(input.value); this.change(); });
        input.addEventListener("change", () => this.done());
      }
    }
    const on = (selector, kind, act) => { for (const e of section.querySelectorAll(selector)) e.addEventListener(kind, () => act(e)); };
    on('[name="round"]', "input", (e) => { this.state.n = Number(e.value); this.change(); });
    on('[name="round"]', "change", () => this.done());
    on('[name="guess"]', "input", (e) => { if (e.value !== "" && Number.isFinite(Number(e.value))) this.state.guess = Number(e.value); this.change(); });
    on('[name="guess"]', "change", () => this.done());
    on('[name$="option"]', "change", (e) => { this.state.guess = Number(e.value); this.change(); this.done(); });
    on(".reveal", "click", () => { this.state.shown = true; this.change(); this.done(); });
    on(".again", "click", () => { this.state = this.start(); this.change(); this.done(); });
    on(".copy", "click", (e) => this.page.copy(this, e));
    new ResizeObserver(() => { for (const p of this.pictures) p.measure(); this.change(); }).observe(section.querySelector(".stage"));
  }

  // The state as words of an address, and back.
  address() {
    const { state } = this, words = new URLSearchParams();
    for (const [name, at] of Object.entries(state.at)) words.set(name, at.join(","));
    for (const s of this.described.sliders) words.set(s.name, s.says.length ? state.pick[s.name] : s.values[state.pick[s.name]]);
    if (this.described.rounds) words.set("round", state.n);
    if (this.ask.kind !== "point") words.set("guess", this.ask.kind === "curve" ? state.guess.map((v) => Number(v.toPrecision(4))).join(",") : state.guess);
    if (state.shown) words.set("shown", 1);
    return words.toString();
  }

  open(words) {
    const given = new URLSearchParams(words), state = this.start(), list = (text) => text.split(",").map(Number);
    const finite = (values, many) => values.length === many && values.every(Number.isFinite);
    for (const name of Object.keys(state.at)) {
      if (given.has(name) && finite(list(given.get(name)), 2)) state.at[name] = list(given.get(name));
    }
    for (const s of this.described.sliders) {
      const wanted = Number(given.get(s.name) ?? NaN);
      if (!Number.isFinite(wanted)) continue;
      const values = s.says.length ? s.values.map((_, i) => i) : s.values;
      state.pick[s.name] = values.reduce((best, v, i) => (Math.abs(v - wanted) < Math.abs(values[best] - wanted) ? i : best), 0);
    }
    const round = Math.round(Number(given.get("round") ?? NaN));
    if (Number.isFinite(round)) state.n = Math.min(Math.max(1, round), this.described.rounds || 1);
    if (given.has("guess") && this.ask.kind !== "point") {
      const guess = list(given.get("guess"));
      if (this.ask.kind === "curve" ? finite(guess, this.ask.knots.length) : finite(guess, 1)) state.guess = this.ask.kind === "curve" ? guess : guess[0];
    }
    state.shown = given.get("shown") === "1";
    this.state = state;
    this.change();
  }
}
