// Opens a study's report in a real browser, uses every control, and reads the numbers back.
//
// node drive.mjs FOLDER CHROMIUM [SCREENSHOTS]: FOLDER holds results.csv, results.json and report/index.html, of a study
// of procedures (`conformax study`, `conformax report`) or of a conditional one.

import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { meansOf, readRecords } from "./records.mjs";
import { overlaps } from "./overlaps.mjs";
import { checkAllSets, checkByHand, checkByKeyboard } from "./try-it.mjs";

const [folder, executablePath, screenshots] = process.argv.slice(2);
const page_url = pathToFileURL(resolve(folder, "report/index.html")).href;
const results = JSON.parse(readFileSync(resolve(folder, "results.json"), "utf8"));
/** A conditional study has no records of procedures by level, and none of the controls for them. */
const isConditional = "shift" in results;
const records = isConditional ? [] : readRecords(readFileSync(resolve(folder, "results.csv"), "utf8"));
const means = meansOf(records);
/** The page is one file that people send to each other. */
const MOST_BYTES = 1_500_000;

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];
const SIZES = [{ width: 390, height: 844 }, { width: 1280, height: 900 }];

let checks = 0;
const failures = [];
const check = (holds, what) => {
  checks += 1;
  if (!holds) failures.push(what);
};

const visible = (page, selector) =>
  page.$$eval(selector, (found) => found.filter((one) => one.getClientRects().length > 0).length);

/** Nothing overlaps, nothing is wider than the screen, every drawing says in words what it shows. */
async function checkLayout(page, where) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check(wide <= 0, `${where}: the page is ${wide} px wider than the screen`);
  const found = await page.evaluate(overlaps);
  check(found.texts > 100, `${where}: only ${found.texts} texts were compared`);
  for (const pair of found.pairs.slice(0, 8)) check(false, `${where}: texts overlap: ${pair}`);
  const bare = await page.$$eval(".panel svg", (drawings) =>
    drawings.filter((one) => one.getAttribute("role") !== "img" || !one.getAttribute("aria-label")).length);
  check(bare === 0, `${where}: ${bare} drawings have no text alternative`);
  const without = await page.$$eval("section.figure", (figures) =>
    figures.filter((one) => !one.querySelector("details table tbody tr")).length);
  check(without === 0, `${where}: ${without} figures have no table of their numbers`);
}

/** A shown number equals the mean of the records to the digits it is shown with. */
function agrees(text, mean) {
  if (mean === undefined) return text === "–";
  const digits = (text.split(".")[1] ?? "").length;
  return text !== "" && Math.abs(Number(text) - mean) <= 0.5 * 10 ** -digits + 1e-9;
}

async function checkNumbers(page, where) {
  const levels = [...new Set(records.map((record) => record.alpha))].sort((a, b) => b - a);
  for (let i = 0; i < levels.length; i += 1) {
    await page.fill("#alpha", String(i));
    const shown = await page.$eval("#alpha-shown", (output) => output.textContent);
    check(Number(shown) === Number(levels[i]), `${where}: slider at ${i} shows α = ${shown}, not ${levels[i]}`);
    const cells = await page.evaluate(() => {
      const { metrics } = JSON.parse(document.getElementById("numbers").textContent);
      return [...document.querySelectorAll(".glance")].flatMap((panel) =>
        [...panel.querySelectorAll("tbody tr")].flatMap((row) =>
          [...row.querySelectorAll("td")].map((cell, metric) => ({
            benchmark: panel.dataset.benchmark,
            procedure: row.dataset.procedure,
            metric: metrics[metric],
            text: cell.firstChild.textContent,
          }))));
    });
    check(cells.length > 0, `${where}: no numbers at α = ${shown}`);
    for (const { benchmark, procedure, metric, text } of cells) {
      const mean = means.get([benchmark, procedure, levels[i], metric].join("|"));
      check(agrees(text, mean), `${where}: ${benchmark} ${procedure} α = ${shown} ${metric}: ${text}, records ${mean}`);
    }
  }
}

/** The values that marks of a figure carry equal the records' means. */
async function checkMarks(page, figure, metric, where) {
  const marks = await page.$$eval(`#figure-${figure} [data-benchmark] [data-procedure] [data-value]`, (found) =>
    found.filter((one) => one.dataset.value).map((one) => ({
      benchmark: one.closest("[data-benchmark]").dataset.benchmark,
      procedure: one.closest("[data-procedure]").dataset.procedure,
      alpha: one.dataset.at.replace("α = ", ""),
      text: one.dataset.value.split(" ")[0],
    })));
  check(marks.length > 0, `${where}: figure ${figure} has no marks`);
  for (const { benchmark, procedure, alpha, text } of marks) {
    const mean = means.get([benchmark, procedure, String(Number(alpha)), metric].join("|"));
    check(agrees(text, mean), `${where}: figure ${figure} ${benchmark} ${procedure} α = ${alpha}: ${text}, records ${mean}`);
  }
}

async function checkProcedures(page, where) {
  for (const chip of await page.$$("[data-toggle]")) {
    const name = await chip.getAttribute("data-toggle");
    const selector = `#results .series[data-procedure="${name}"] [data-value]`;
    const before = await visible(page, selector);
    await chip.click();
    check(before > 0 && (await visible(page, selector)) === 0, `${where}: hiding ${name} leaves its marks`);
    check((await chip.getAttribute("aria-pressed")) === "false", `${where}: ${name} does not say that it is hidden`);
    await chip.click();
    check((await visible(page, selector)) === before, `${where}: showing ${name} again does not`);
  }
}

async function checkBenchmarks(page, where) {
  const before = await visible(page, "#figure-4 .panel");
  for (const name of await page.$$eval("#benchmark option", (options) => options.map((one) => one.value))) {
    await page.selectOption("#benchmark", name);
    const shown = await visible(page, "#figure-4 .panel");
    check(shown === (name ? 1 : before), `${where}: benchmark "${name}" shows ${shown} panels`);
    if (name) await checkLayout(page, `${where}, ${name} alone`);
  }
  await page.selectOption("#benchmark", "");
  check((await visible(page, "#figure-4 .panel")) === before, `${where}: choosing all benchmarks does not show all`);
}

async function checkLevel(page, where) {
  const guide = () => page.$eval("#figure-4 .guide", (line) => Number(line.getAttribute("x1")));
  await page.fill("#alpha", "0");
  const first = await guide();
  const last = (await page.$eval("#alpha", (slider) => slider.max));
  await page.fill("#alpha", last);
  check((await guide()) > first, `${where}: the line at the chosen level does not move`);
  check((await visible(page, "#figure-6 .dim")) > 0, `${where}: no bars step back for the chosen level`);
  for (const tab of await page.$$("[data-level]")) {
    await tab.click();
    const level = await tab.getAttribute("data-level");
    const shown = await page.$$eval("[data-strata-level]", (parts) =>
      [...new Set(parts.filter((one) => !one.hidden).map((one) => one.dataset.strataLevel))]);
    check(shown.join() === level, `${where}: tab ${level} shows the strata of ${shown}`);
  }
}

async function checkHover(page, where) {
  const names = await page.$$eval("[data-toggle]", (chips) => chips.map((one) => one.dataset.toggle));
  const drawing = await page.$("#figure-4 .panel svg");
  await drawing.evaluate((one) => one.scrollIntoView({ block: "center" }));
  const box = await drawing.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const told = await page.$eval("#tip", (tip) => (tip.hidden ? "" : tip.textContent));
  check(told.startsWith("α = "), `${where}: hovering tells nothing`);
  for (const name of names) check(told.includes(name), `${where}: hovering does not tell ${name}`);
  await page.mouse.move(1, 1);
  await drawing.focus();
  await page.keyboard.press("ArrowRight");
  check(await page.$eval("#tip", (tip) => !tip.hidden), `${where}: arrow keys tell nothing`);
  await drawing.evaluate((one) => one.blur());
  check(await page.$eval("#tip", (tip) => tip.hidden), `${where}: the values stay when the drawing is left`);
}

async function checkTheme(page, figure, where) {
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const ink = () => page.$eval(`${figure} .series .line`, (line) => getComputedStyle(line).stroke);
  const before = [await paper(), await ink()];
  await page.click("#theme");
  const after = [await paper(), await ink()];
  check(before[0] !== after[0] && before[1] !== after[1], `${where}: the button changes no colour`);
  await page.click("#theme");
  check((await paper()) === before[0], `${where}: the button does not change back`);
}

async function capture(page, name) {
  const { height } = page.viewportSize();
  const pixels = await page.evaluate(() => document.documentElement.scrollHeight);
  for (let top = 0; top < pixels; top += height) {
    await page.evaluate((y) => scrollTo(0, y), top);
    await page.screenshot({ path: resolve(screenshots, `${name}-${String(top / height).padStart(2, "0")}.png`) });
  }
}

/** The page of a study of procedures: every control, and what it shows. */
async function checkPage(page, viewport, colorScheme, where) {
  await checkMarks(page, 4, "average_size", where);
  await checkMarks(page, 6, "singleton_ratio", where);
  await checkMarks(page, 7, "coverage", where);
  await checkMarks(page, 9, "sscv", where);
  await checkNumbers(page, where);
  await checkProcedures(page, where);
  await checkBenchmarks(page, where);
  await checkLevel(page, where);
  await checkHover(page, where);
  await checkTheme(page, "#figure-4", where);
  await checkByHand(page, results, check, where);
  await checkLayout(page, `${where}, after trying it`);
  if (viewport.width < 600 && colorScheme === "light") await checkByKeyboard(page, results, check, where);
  if (viewport.width > 600 && colorScheme === "light") await checkAllSets(page, results, check, where);
}

/** That of a conditional study: a panel for each benchmark and level, and every number in its tables. */
async function checkConditional(page, where) {
  const each = results.benchmarks.length * results.levels.length;
  for (const [figure, panels] of [[1, each], [2, results.benchmarks.length], [3, each]]) {
    const shown = await visible(page, `#figure-${figure} .panel`);
    check(shown === panels, `${where}: figure ${figure} has ${shown} panels, not ${panels}`);
  }
  const rows = (table) => page.$$eval(`#${table} tbody tr`, (found) => found.length);
  check((await rows("table-1")) === each * results.procedures.length, `${where}: table 1 lacks rows`);
  check((await rows("table-2")) === each * results.weightings.length, `${where}: table 2 lacks rows`);
  await checkProcedures(page, where);
  await checkTheme(page, "#figure-2", where);
}

const bytes = statSync(resolve(folder, "report/index.html")).size;
check(bytes < MOST_BYTES, `the page has ${bytes} bytes`);

const browser = await chromium.launch({ executablePath, args: FLAGS });
try {
  for (const viewport of SIZES) {
    for (const colorScheme of ["light", "dark"]) {
      const where = `${viewport.width} px, ${colorScheme}`;
      const context = await browser.newContext({ viewport, colorScheme, reducedMotion: "reduce" });
      const page = await context.newPage();
      page.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) check(false, `${where}: console: ${message.text()}`);
      });
      page.on("pageerror", (error) => check(false, `${where}: ${error}`));
      page.on("request", (request) => {
        check(/^(file|data):/.test(request.url()), `${where}: asks the network for ${request.url()}`);
      });
      await page.goto(page_url);
      await page.waitForFunction(() => [...document.querySelectorAll(".figure .panel svg")].every((drawing) =>
        drawing.style.getPropertyValue("--unit")));
      if (screenshots) await capture(page, `${viewport.width}-${colorScheme}`);
      await page.evaluate(() => scrollTo(0, 0));
      await checkLayout(page, where);
      await (isConditional ? checkConditional(page, where) : checkPage(page, viewport, colorScheme, where));
      await context.close();
    }
  }
} finally {
  await browser.close();
}
for (const failure of failures.slice(0, 40)) console.error(failure);
console.log(`${checks} checks, ${failures.length} failed`);
process.exitCode = failures.length > 0 ? 1 : 0;
