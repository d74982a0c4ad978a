"use strict";
// Numbers: what Python tabulated, at the position where the reader is. A table times a position, and what follows of it.

async function unpacked(text) { // base64 and gzip
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

function written(v) { // three digits
  if (typeof v !== "number") return v;
  if (Number.isNaN(v)) return "none";
  if (!Number.isFinite(v)) return v > 0 ? "∞" : "−∞";
  const size = Math.abs(v), far = v !== 0 && (size < 1e-3 || size >= 1e5);
  const text = Number.isInteger(v) && size < 1e5 ? String(v) : far ? v.toExponential(2) : String(Number(v.toPrecision(3)));
  return text.replace("e+", "e").replaceAll("-", "−");
}
const place = (v) => (Math.abs(v) < 0.005 ? "0.00" : v.toFixed(2)).replace("-", "−");
const pointOf = ([x, y]) => `(${place(x)}, ${place(y)})`;

class Numbers {
  constructor(described, buffer) {
    this.parameters = described.parameters; // [name, number of values], in order
    this.quantities = described.quantities;
    this.derived = described.derived;
    this.floats = new Float64Array(buffer);
    this.out = {}; // arrays that are used again in every frame
  }

  // Positions: all coordinates, and 1; and the products of two of them, for forms.
  move(coordinates, chosen, round) {
    const pairs = (of) => of.flatMap((a, i) => of.slice(i).map((b) => a * b)), one = [...coordinates, 1];
    this.by = { constant: [1], linear: one, squares: one, form: pairs(one) };
    this.lean = { linear: coordinates, squares: coordinates, form: pairs(coordinates) }; // of homogeneous functions
    this.chosen = chosen; // index into the values of every parameter, by name
    this.round = round;
    this.known = {};
  }

  // All entries of a quantity, [rounds and] its shape flattened, for the chosen parameters or others.
  all(name, chosen = this.chosen) {
    if (chosen === this.chosen && this.known[name]) return this.known[name];
    const found = name in this.derived ? this.follow(name, chosen) : this.look(name, chosen);
    if (chosen === this.chosen) this.known[name] = found;
    return found;
  }

  look(name, chosen) {
    const q = this.quantities[name], by = q.lean ? this.lean[q.kind] : this.by[q.kind];
    const size = q.shape.reduce((a, b) => a * b, q.rounds || 1), inner = (q.kind === "squares" ? q.lengths : 1) * by.length;
    let at = 0;
    for (const p of q.over) at = at * this.parameters[p] + chosen[p];
    at = q.offset + at * size * inner;
    const out = chosen === this.chosen ? (this.out[name] ??= new Float64Array(size)) : new Float64Array(size);
    for (let k = 0; k < size; k++) {
      let total = 0;
      if (q.kind === "squares") {
        for (let r = 0; r < q.lengths; r++) {
          let length = 0;
          for (let i = 0; i < by.length; i++) length += this.floats[at++] * by[i];
          total += length * length;
        }
      } else for (let i = 0; i < by.length; i++) total += this.floats[at++] * by[i];
      out[k] = total;
    }
    return out;
  }

  follow(name, chosen) {
    const d = this.derived[name], of = d.of.map((one) => (typeof one === "string" ? this.all(one, chosen) : [one]));
    const pick = (k, i) => of[k][of[k].length === 1 ? 0 : i], each = (f) => Array.from(of[0], (_, i) => f(i));
    switch (d.does) {
      case "root": return each((i) => Math.sqrt(Math.max(0, pick(0, i))));
      case "ratio": return each((i) => pick(0, i) / pick(1, i));
      case "less": return each((i) => pick(0, i) - pick(1, i));
      case "mix": return each((i) => d.of.reduce((total, _, k) => total + d.weights[k] * pick(k, i), 0));
      case "least": return each((i) => Math.min(pick(0, i), pick(1, i)));
      case "most": return each((i) => Math.max(pick(0, i), pick(1, i)));
      case "last": return [of[0][of[0].length - 1]];
      case "largest": return [Math.max(...of[0])];
      case "sum": return [of[0].reduce((a, b) => a + b, 0)];
      case "first": case "final": {
        const hits = this.over(d.of[0], d.over, chosen).map((v, i) => {
          const against = typeof d.of[1] === "string" ? this.all(d.of[1], { ...chosen, [d.over]: i })[0] : d.of[1];
          return d.sign * v >= d.sign * against;
        });
        const k = d.does === "first" ? hits.indexOf(true) : hits.lastIndexOf(true);
        return [k < 0 ? NaN : this.values[d.over][k]];
      }
    }
    throw new Error(`nothing is known of ${d.does}`);
  }

  over(name, parameter, chosen = this.chosen) { // one number for each value of a parameter
    const key = `${name} over ${parameter}`;
    if (chosen === this.chosen && this.known[key]) return this.known[key];
    const found = this.values[parameter].map((_, i) => this.entry(name, { ...chosen, [parameter]: i })[0]);
    if (chosen === this.chosen) this.known[key] = found;
    return found;
  }

  roundsOf(name) { // how many rounds a quantity has, 0 if it does not change with them
    const d = this.derived[name];
    if (!d) return this.quantities[name]?.rounds ?? 0;
    return ["last", "largest", "first", "final", "sum"].includes(d.does) ? 0 : Math.max(...d.of.map((o) => (typeof o === "string" ? this.roundsOf(o) : 0)));
  }

  entry(name, chosen = this.chosen) { // its entries in the round that is shown
    const all = this.all(name, chosen), rounds = this.roundsOf(name);
    if (!rounds) return all;
    const size = all.length / rounds, n = Math.min(this.round, rounds) - 1;
    return all.slice(n * size, (n + 1) * size);
  }

  series(name, entry = 0) { // one entry in every round
    const all = this.all(name), rounds = this.roundsOf(name), size = all.length / (rounds || all.length);
    return all.filter((_, i) => i % size === entry);
  }

  points(name, entry = false) { // pairs
    const all = entry ? this.entry(name) : this.all(name), made = [];
    for (let i = 0; i < all.length; i += 2) made.push([all[i], all[i + 1]]);
    return made;
  }
}

// A theorem where the reader is: as theory's check, in the order of the inequalities.
function judge(theorem, numbers, k) {
  const failed = theorem.failed[theorem.over.reduce((at, p) => at * numbers.parameters[p] + numbers.chosen[p], 0)];
  if (failed.length && !theorem.force) return { verdict: "outside assumptions", why: failed.join("; ") };
  const lhs = numbers.all(`lhs${k}`), rhs = numbers.all(`rhs${k}`);
  const noise = 1e-12 * Math.max(...Array.from(rhs, Math.abs).filter(Number.isFinite));
  let worst = 0, at = 0;
  for (let i = 0; i < lhs.length; i++) {
    const ratio = lhs[i] <= noise ? 0 : lhs[i] / rhs[i];
    if (!(lhs[i] <= (1 + theorem.tolerance) * rhs[i] + noise)) {
      return { verdict: "violated", n: theorem.n[i], i, lhs: lhs[i], rhs: rhs[i], silent: failed.length > 0 };
    }
    if (ratio > worst) [worst, at] = [ratio, i];
  }
  const last = rhs[rhs.length - 1], trivial = theorem.trivial ? numbers.all(`trivial${k}`)[0] : Infinity;
  return { verdict: last < trivial ? "holds" : "vacuous", n: theorem.n[at], i: at, lhs: lhs[at], rhs: rhs[at], silent: failed.length > 0 };
}
