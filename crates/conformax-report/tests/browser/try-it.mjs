// Drives *Try it*: every set and probability that it shows is held against the library's, which results.json has.

/** How far a probability may be from the library's: the page has the largest of a set to seven digits. */
const TOLERANCE = 1e-5;

/** What the strip shows now, read off the page. */
export function shown() {
  const side = (name) => {
    const cells = [...document.querySelectorAll(`#try-labels .answer[data-side="${name}"]`)];
    return {
      procedure: document.getElementById(`try-${name}`).selectedOptions[0].textContent,
      size: Number(document.getElementById(`try-${name}-says`).dataset.size),
      hit: document.getElementById(`try-${name}-says`).parentElement.classList.contains("hit"),
      labels: cells.filter((cell) => cell.dataset.in === "1").map((cell) => Number(cell.closest("li").dataset.label)),
      masses: cells.map((cell) => Number(cell.dataset.mass)),
    };
  };
  return {
    benchmark: Number(document.getElementById("try-benchmark").value),
    row: Number(document.querySelector("[name=try-row]:checked").value),
    alpha: Number(document.getElementById("try-alpha-shown").textContent),
    listed: [...document.querySelectorAll("#try-labels li")].map((item) => Number(item.dataset.label)),
    sides: [side("a"), side("b")],
  };
}

/** Holds what is shown against the library; gives the faults found, in words. */
export function faults(results, { benchmark, row, alpha, listed, sides }) {
  const found = [];
  const example = results.examples.filter((one) => one.rows.length > 0)[benchmark];
  const wanted = example.rows[row];
  const level = results.levels.indexOf(alpha);
  for (const { procedure, size, hit, labels, masses } of sides) {
    const answer = wanted.answers[example.procedures.indexOf(procedure)][level];
    const place = `${example.benchmark}, row ${wanted.row}, α = ${alpha}, ${procedure}`;
    const sorted = (list) => [...list].sort((a, b) => a - b).join();
    if (sorted(labels) !== sorted(answer.labels)) found.push(`${place}: set ${labels}, library ${answer.labels}`);
    if (size !== answer.size) found.push(`${place}: ${size} labels, library ${answer.size}`);
    if (hit !== answer.labels.includes(wanted.truth)) found.push(`${place}: wrong about the true label`);
    listed.forEach((label, i) => {
      const mass = answer.probabilities[answer.labels.indexOf(label)] ?? 0;
      if (!(Math.abs(masses[i] - mass) <= TOLERANCE)) {
        found.push(`${place}: label ${label} has ${masses[i]}, library ${mass}`);
      }
    });
  }
  return found;
}

/** Every row, level and procedure of every benchmark, by way of the controls. */
export async function checkAllSets(page, results, check, where) {
  const everything = await page.evaluate((read) => {
    const now = new Function(`return (${read})()`);
    const change = (element, value, event) => {
      element.value = value;
      element.dispatchEvent(new Event(event, { bubbles: true }));
    };
    const byId = (id) => document.getElementById(id);
    const seen = [];
    for (const { value: benchmark } of [...byId("try-benchmark").options]) {
      change(byId("try-benchmark"), benchmark, "change");
      const offered = [...byId("try-a").options].filter((option) => !option.disabled).map(({ value }) => value);
      for (let row = 0; row < document.querySelectorAll("[name=try-row]").length; row += 1) {
        document.querySelectorAll("[name=try-row]")[row].click();
        for (let level = 0; level <= Number(byId("try-alpha").max); level += 1) {
          change(byId("try-alpha"), level, "input");
          for (let place = 0; place < offered.length; place += 2) {
            change(byId("try-a"), offered[place], "change");
            change(byId("try-b"), offered[Math.min(place + 1, offered.length - 1)], "change");
            seen.push(now());
          }
        }
      }
    }
    return seen;
  }, shown.toString());
  const pairs = new Set(everything.map(({ benchmark, row, alpha }) => [benchmark, row, alpha].join()));
  const rows = results.examples.reduce((sum, example) => sum + example.rows.length, 0);
  const wanted = rows * results.levels.length;
  check(pairs.size === wanted, `${where}: ${pairs.size} of ${wanted} rows and levels were compared`);
  check(results.study !== "paper" || wanted >= 200, `${where}: the default study has ${wanted} rows and levels alone`);
  const procedures = new Set(everything.flatMap(({ benchmark, sides }) => sides.map(({ procedure }) => `${benchmark} ${procedure}`)));
  const answered = results.examples.filter(({ rows }) => rows.length > 0).flatMap((one) => one.procedures);
  check(procedures.size === answered.length, `${where}: ${procedures.size} of ${answered.length} procedures were compared`);
  for (const now of everything) {
    const found = faults(results, now);
    check(found.length === 0, `${where}: ${found.slice(0, 2).join("; ")}`);
  }
}

/** As a reader does it: choose, slide, compare, ask for more. */
export async function checkByHand(page, results, check, where) {
  const agrees = async (what) => {
    const found = faults(results, await page.evaluate(shown));
    check(found.length === 0, `${where}: after ${what}: ${found.slice(0, 2).join("; ")}`);
  };
  await agrees("opening");
  const before = await page.evaluate(shown);
  check(before.sides[0].procedure !== before.sides[1].procedure, `${where}: both sides show the same procedure`);
  const thresholds = () => page.$eval("#try-labels .threshold", (line) => parseFloat(line.style.left));
  const last = await page.$eval("#try-alpha", (slider) => slider.max);
  const first = await thresholds();
  await page.fill("#try-alpha", last);
  await agrees("sliding");
  const after = await page.evaluate(shown);
  check(after.alpha < before.alpha && (await thresholds()) > first, `${where}: sliding moves no threshold`);
  check(after.sides[0].size > before.sides[0].size, `${where}: more confidence takes no more labels`);
  for (const kind of ["easy", "ambiguous", "wrong"]) {
    await page.click(`#try-rows .${kind} .pick:last-child`);
    await agrees(`choosing a row that is ${kind}`);
    const now = await page.evaluate(shown);
    check(results.examples[now.benchmark].rows[now.row].kind === kind, `${where}: that row is not ${kind}`);
  }
  await page.selectOption("#try-a", "0");
  await page.selectOption("#try-b", await page.$$eval("#try-b option:enabled", (offered) => offered.at(-1).value));
  await agrees("choosing procedures");
  const count = () => page.$$eval("#try-labels li", (items) => items.filter((item) => !item.hidden).length);
  const few = await count();
  await page.click("#try-more");
  check((await count()) > few, `${where}: no more labels are shown`);
  await page.click("#try-more");
  check((await count()) === few, `${where}: no fewer labels are shown`);
  await page.selectOption("#try-benchmark", "0");
  await agrees("choosing a benchmark");
}

/** The same with a keyboard alone: Tab to each control, arrows to change it. */
export async function checkByKeyboard(page, results, check, where) {
  const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.name || "");
  const reach = async (wanted) => {
    for (let tabs = 0; tabs < 300; tabs += 1) {
      if ((await focused()) === wanted) return true;
      await page.keyboard.press("Tab");
    }
    return false;
  };
  await page.evaluate(() => document.activeElement.blur());
  const steps = [
    ["try-benchmark", "ArrowDown", ({ benchmark }) => benchmark],
    ["try-row", "ArrowDown", ({ row }) => row],
    ["try-alpha", "ArrowLeft", ({ alpha }) => alpha],
    ["try-a", "ArrowDown", ({ sides }) => sides[0].procedure],
    ["try-b", "ArrowUp", ({ sides }) => sides[1].procedure],
  ];
  // One benchmark leaves nothing to choose.
  const offered = (await page.$$("#try-benchmark option")).length > 1 ? steps : steps.slice(1);
  for (const [control, key, part] of offered) {
    check(await reach(control), `${where}: Tab does not reach ${control}`);
    const before = await page.evaluate(shown);
    await page.keyboard.press(key);
    const after = await page.evaluate(shown);
    check(part(after) !== part(before), `${where}: ${key} on ${control} changes nothing`);
    const found = faults(results, after);
    check(found.length === 0, `${where}: after ${key} on ${control}: ${found.slice(0, 2).join("; ")}`);
  }
  const more = await reach("try-more");
  check(more, `${where}: Tab does not reach try-more`);
  await page.keyboard.press("Enter");
  const open = await page.$eval("#try-more", (button) => button.getAttribute("aria-expanded"));
  check(open === "true", `${where}: Enter on try-more shows no more labels`);
  await page.keyboard.press("Enter");
}
