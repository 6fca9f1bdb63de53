"use strict";
(() => {
  const source = document.getElementById("examples");
  if (!source) return;
  const { levels, procedures, benchmarks } = JSON.parse(source.textContent);
  const byId = (id) => document.getElementById(id);
  /** Labels shown until the reader asks for more. */
  const FEW = 8;
  const order = levels.map((_, level) => level).sort((a, b) => levels[b] - levels[a]);
  const make = (name, className, text) => {
    const element = document.createElement(name);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  /** What a procedure says of a row at a level: who is in the set, how many, and with which probability. */
  const answer = (benchmark, row, procedure, level) => {
    const [place, written] = benchmark.rules[procedure][level];
    const threshold = written ?? Infinity;
    const score = benchmark.scores[place];
    const scores = row.scores[place].map((value) => value ?? Infinity);
    const chosen = row.chosen[`${procedure},${level}`];
    const inside = chosen
      ? row.labels.map((_, label) => chosen.includes(label))
      : scores.map((value) => value <= threshold);
    const counted = inside.filter(Boolean).length;
    // Beyond the labels listed there may be more; the true one, listed last, is no measure of that.
    const beyond = row.labels.every((_, label) => inside[label] || label === row.truth);
    return {
      threshold, scores, inside, score, isChoice: chosen !== undefined,
      size: beyond ? row.sizes[procedure][level] : counted,
      temperature: chosen || !(score.gamma > 1) ? null : 1 / (score.gamma - 1) / threshold,
      masses: masses(row, inside, chosen ? 1 : score.gamma, threshold, row.masses[procedure][level]),
    };
  };

  /**
   * Probabilities from that of the first label of the set, with gaps to its logit: γ-entmax at the temperature of the
   * threshold where γ > 1, softmax over the set elsewhere.
   */
  const masses = (row, inside, gamma, threshold, largest) => {
    const first = row.logits[inside.indexOf(true)] ?? -Infinity;
    const delta = 1 / (gamma - 1);
    return inside.map((isInside, label) => {
      const logit = row.logits[label] ?? -Infinity;
      if (!isInside || largest === 0) return 0;
      if (!(gamma > 1)) return first === -Infinity ? largest : largest * Math.exp(logit - first);
      if (threshold === Infinity) return logit === -Infinity ? 0 : largest;
      if (threshold === 0) return largest;
      return Math.max(0, largest ** (1 / delta) - (first - logit) / threshold) ** delta;
    });
  };

  /** The first names of a set, as many as have room, and how many more there are. */
  const words = (names, size) => {
    const shown = [];
    let room = 50;
    for (const name of names) {
      const short = name.length > 32 ? `${name.slice(0, 31)}…` : name;
      if (shown.length > 0 && short.length > room) break;
      room -= short.length + 2;
      shown.push(short);
    }
    const rest = size - shown.length;
    return rest > 0 ? `${shown.join(", ")} and ${rest.toLocaleString("en")} more` : shown.join(", ");
  };
  const printed = (value) => (value === Infinity ? "∞" : Number(value.toPrecision(4)).toString());
  const printedMass = (mass) => (mass === 0 ? "0" : mass < 0.0005 ? "<0.001" : mass.toFixed(3));

  const state = { benchmark: 0, row: 0, level: order[0], all: false };
  const sides = ["a", "b"].map((side) => ({
    side,
    choice: byId(`try-${side}`),
    says: byId(`try-${side}-says`),
    holds: byId(`try-${side}-set`),
    rule: byId(`try-${side}-rule`),
  }));
  const board = byId("try-labels");
  const more = byId("try-more");

  const lane = (className, share, isBeyond) => {
    const track = make("span", `lane ${className}`);
    const bar = make("i", isBeyond ? "fill beyond" : "fill");
    bar.style.width = `${(100 * share).toFixed(2)}%`;
    track.append(bar);
    return track;
  };

  const showSide = ({ side, choice, says, holds, rule }, benchmark, row) => {
    const procedure = Number(choice.value);
    const now = answer(benchmark, row, procedure, state.level);
    const { size, inside, threshold, score, temperature, isChoice } = now;
    const names = row.labels.map((label) => benchmark.names[label]);
    const hit = inside[row.truth];
    says.textContent = size === 0 ? "no label" : size === 1 ? "1 label" : `${size.toLocaleString("en")} labels`;
    says.dataset.size = size;
    says.parentElement.className = `says ${hit ? "hit" : "miss"}`;
    says.nextElementSibling.textContent = hit ? "holds the true label" : "misses the true label";
    const members = names.filter((_, label) => inside[label]);
    holds.textContent = size === 0 ? "{ }" : `{ ${words(members, size)} }`;
    const family = score.gamma === null ? "" : `, γ = ${score.gamma}`;
    const beta = temperature === null ? "" : `, β = ${printed(temperature)}`;
    const who = isChoice ? "chosen label by label, mostly " : "";
    rule.textContent = `${who}${score.name}${family}: score ≤ ${printed(threshold)}${beta}`;
    // One axis for all levels, so that the threshold is seen to move.
    const finite = benchmark.rules[procedure].map(([, value]) => value ?? 0);
    const reach = 1.25 * Math.max(...finite) || Math.max(...now.scores.filter(Number.isFinite), 1);
    const style = procedures[procedure].class;
    return row.labels.map((_, label) => {
      const cell = make("div", `answer ${style} ${inside[label] ? "in" : "out"}`);
      const share = now.scores[label] / reach;
      const scored = lane("score", Math.min(share, 1), share > 1);
      const mark = make("b", "threshold");
      mark.style.left = `${(100 * Math.min(threshold / reach, 1)).toFixed(2)}%`;
      scored.append(mark);
      scored.title = `score ${printed(now.scores[label])}`;
      const mass = now.masses[label];
      cell.append(scored, lane("mass", mass, false), make("span", "number", printedMass(mass)));
      Object.assign(cell.dataset, { side, in: inside[label] ? "1" : "0", mass });
      cell.setAttribute("role", "img");
      cell.setAttribute("aria-label", `${procedures[procedure].name}: ${
        inside[label] ? `in the set, probability ${printedMass(mass)}` : "not in the set"}`);
      return cell;
    });
  };

  const show = () => {
    const benchmark = benchmarks[state.benchmark];
    const row = benchmark.rows[state.row];
    const names = row.labels.map((label) => benchmark.names[label]);
    const alpha = levels[state.level];
    byId("try-alpha").setAttribute("aria-valuetext", alpha);
    byId("try-alpha-shown").textContent = alpha;
    byId("try-told").replaceChildren(
      `Row ${row.row}: the true label is `, make("b", "", names[row.truth]),
      ...(row.kind === "wrong" ? [", the model’s first ", make("b", "", names[0])] : []), ".",
    );
    const answers = sides.map((side) => showSide(side, benchmark, row));
    const finite = row.logits.filter((logit) => logit !== null);
    const [low, high] = [Math.min(...finite), Math.max(...finite)];
    // A label has a bar, however short, unless its logit is −∞.
    const share = (logit) => (logit === null ? 0 : 0.04 + 0.96 * ((logit - low) / (high - low || 1)));
    const kept = row.labels.length <= FEW + 1 ? row.labels.length : FEW;
    board.replaceChildren(...row.labels.map((label, place) => {
      const item = make("li", place === row.truth ? "true" : "");
      item.dataset.label = label;
      item.hidden = !state.all && place >= kept && place !== row.truth;
      const name = make("span", "name");
      name.append(make("span", "", names[place]));
      name.title = names[place];
      if (place === row.truth) name.append(make("em", "", "true"));
      const logit = lane("logit", share(row.logits[place]), false);
      const number = make("span", "number", row.logits[place] === null ? "−∞" : row.logits[place].toFixed(2));
      const model = make("div", "model");
      model.append(logit, number);
      item.append(name, model, ...answers.map((cells) => cells[place]));
      return item;
    }));
    const spare = row.labels.length - kept;
    more.hidden = spare <= 0;
    more.textContent = state.all ? "Show fewer labels" : `Show ${spare} more labels`;
    more.setAttribute("aria-expanded", state.all);
  };

  /** The rows of a benchmark as radio buttons, by kind. */
  const offerRows = () => {
    const kinds = new Map();
    benchmarks[state.benchmark].rows.forEach((row, place) => {
      if (!kinds.has(row.kind)) kinds.set(row.kind, []);
      kinds.get(row.kind).push(place);
    });
    byId("try-rows").replaceChildren(...[...kinds].map(([kind, places]) => {
      const group = make("span", `kind ${kind}`);
      group.append(make("span", "kind-name", kind));
      places.forEach((place, i) => {
        const label = make("label", "pick");
        const input = Object.assign(make("input"), { type: "radio", name: "try-row", value: place });
        input.checked = place === state.row;
        label.append(input, make("span", "", String(i + 1)), make("span", "sr", ` ${kind}`));
        group.append(label);
      });
      return group;
    }));
  };

  /** Not every benchmark has answers of every procedure; who shows one that it lacks takes another. */
  const offerProcedures = () => {
    const { rules } = benchmarks[state.benchmark];
    const choices = sides.map(({ choice }) => choice);
    for (const option of choices.flatMap(({ options }) => [...options])) {
      option.disabled = option.hidden = rules[option.value] === null;
    }
    choices.forEach((choice, side) => {
      const other = Number(choices[1 - side].value);
      const first = rules.findIndex((rule, procedure) => rule !== null && procedure !== other);
      if (rules[choice.value] === null) choice.value = Math.max(0, first);
    });
  };

  const open = (benchmark) => {
    state.benchmark = benchmark;
    // The first ambiguous row says most.
    state.row = Math.max(0, benchmarks[benchmark].rows.findIndex((row) => row.kind === "ambiguous"));
    state.all = false;
    offerProcedures();
    offerRows();
    show();
  };

  benchmarks.forEach(({ title }, place) => byId("try-benchmark").append(new Option(title, place)));
  const ours = procedures.findIndex(({ name }) => name === byId("try").dataset.ours);
  const first = Math.max(0, ours);
  for (const [place, { choice }] of sides.entries()) {
    procedures.forEach(({ name }, procedure) => choice.append(new Option(name, procedure)));
    choice.value = place === 0 ? first : procedures.findIndex((_, procedure) => procedure !== first);
    if (choice.selectedIndex < 0) choice.value = first;
    choice.addEventListener("change", show);
  }
  byId("try-benchmark").addEventListener("change", ({ target }) => open(Number(target.value)));
  byId("try-rows").addEventListener("change", ({ target }) => { state.row = Number(target.value); show(); });
  byId("try-alpha").addEventListener("input", ({ target }) => { state.level = order[target.value]; show(); });
  more.addEventListener("click", () => { state.all = !state.all; show(); });
  byId("try-alpha").max = order.length - 1;
  byId("try-alpha").value = 0;
  const widest = benchmarks.reduce((best, { names }, place) =>
    (Object.keys(names).length > Object.keys(benchmarks[best].names).length ? place : best), 0);
  byId("try-benchmark").value = widest;
  open(widest);
})();
