// Drives the page of the service in headless Chromium: node drive.mjs CONFORMAX CHROMIUM [SCREENSHOTS]
//
// The numbers on the page must be those of /v1/status, change when rows and labels come, and show the alarm.
import { chromium } from "playwright-core";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [conformax, browserPath, screenshots] = process.argv.slice(2);
const CLASSES = 10, TOKEN = "a-token-for-the-page";
const folder = mkdtempSync(join(tmpdir(), "conformax-page-"));

let failed = 0;
function check(what, holds, seen) {
  console.log(`${holds ? "ok  " : "FAIL"} ${what}${holds ? "" : `: ${JSON.stringify(seen)}`}`);
  failed += holds ? 0 : 1;
}

// A small generator of its own: the same rows every time.
let state = 12345;
const uniform = () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
function row(shift) {
  const label = Math.floor(uniform() * CLASSES);
  const logits = Array.from({ length: CLASSES }, (_, one) => 3 * uniform() + (one === label ? 3 * uniform() : 0));
  return { logits, label: (label + shift) % CLASSES };
}

writeFileSync(join(folder, "cal.jsonl"), Array.from({ length: 600 }, () => JSON.stringify(row(0))).join("\n"));
const made = spawnSync(conformax, ["calibrate", "cal.jsonl", "-o", "pets.json"], { cwd: folder });
if (made.status !== 0) throw new Error(made.stderr.toString());
const service = spawn(conformax, ["serve", "pets.json", "--listen", "127.0.0.1:0", "--state", "state"],
  { cwd: folder, env: { ...process.env, CONFORMAX_TOKEN: TOKEN } });
const address = await new Promise((done, fail) => {
  service.stderr.on("data", (text) => {
    const found = text.toString().match(/listening on (http:\S+)/);
    if (found) done(found[1]);
  });
  service.on("exit", (code) => fail(new Error(`the service ended with ${code}`)));
});
const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
const post = async (path, body) => (await fetch(address + path, { method: "POST", headers, body: JSON.stringify(body) })).json();
const status = async () => (await (await fetch(`${address}/v1/status`, { headers })).json()).models.pets;
let sent = 0;
async function send(count, shift) {
  for (let at = 0; at < count; at += 1) {
    const { logits, label } = row(shift);
    const { sets } = await post("/v1/predict", { rows: [{ logits }] });
    await post("/v1/feedback", { rows: [{ id: sets[0].id, label }] });
    sent += 1;
  }
}

const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
const complaints = [];
page.on("pageerror", (error) => complaints.push(error.message));
page.on("request", (request) => {
  if (!request.url().startsWith(address)) complaints.push(`asked ${request.url()}`);
});
const field = (name) => page.locator(`#model-pets [data-field="${name}"]`);
const shown = async (name) => (await field(name).evaluate((cell) => cell.firstChild.textContent)).replaceAll(",", "");
// The page asks every second; what it shows last is what there is once nothing more comes.
async function settled() {
  while ((await shown("labelled")) !== String(sent)) {
    const told = await page.locator("#told").textContent();
    if (told.startsWith("no answer")) throw new Error(`the page says: ${told}`);
    await page.waitForTimeout(50);
  }
}
const picture = async (name, options = {}) => {
  if (screenshots) await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true, ...options });
};

try {
  await page.goto(address);
  await page.locator("#ask").waitFor({ state: "visible" });
  check("without the token there is nothing to see", (await page.locator("section").count()) === 0);
  await page.fill("#token", TOKEN);
  await page.click("button");
  await page.locator("#model-pets").waitFor();
  check("with it, the question is gone", !(await page.locator("#ask").isVisible()));
  check("before the first label it says so", (await page.getByText("no labels yet").count()) === 4);

  await send(400, 0);
  await settled();
  const stands = await status();
  check("labels", (await shown("labelled")) === String(stands.labelled), await shown("labelled"));
  check("rows", (await shown("predicted")) === String(stands.predicted), await shown("predicted"));
  check("coverage", (await shown("recent_coverage")) === stands.recent_coverage.toFixed(4), await shown("recent_coverage"));
  check("size", (await shown("recent_size")) === stands.recent_size.toFixed(3), await shown("recent_size"));
  check("level", (await shown("level")) === stands.level.toFixed(4), await shown("level"));
  check("log capital", (await shown("log_capital")) === stands.log_capital.toFixed(2), await shown("log_capital"));
  const band = `${stands.band[0].toFixed(4)} to ${stands.band[1].toFixed(4)}`;
  check("the band", (await field("recent_coverage").textContent()).includes(band), await field("recent_coverage").textContent());
  check("no alarm yet", (await field("alarm").textContent()) === "no alarm", await field("alarm").textContent());
  check("four charts with lines", (await page.locator("#model-pets polyline").count()) === 4);
  check("coverage has its band", (await page.locator("#model-pets polygon.band").count()) === 1);
  await picture("quiet");

  // Every label is another one: nothing is as it was.
  await send(150, 1);
  await page.locator("section.alarm").waitFor();
  await settled();
  const risen = await status();
  check("the service says that the alarm rose", risen.alarm, risen.alarm);
  check("the page says when", (await field("alarm").textContent()) === `alarm rose at label ${risen.raised_at}`, await field("alarm").textContent());
  check("so does its head", (await page.locator("#told").textContent()) === "alarm: pets");
  await picture("alarm");
  await page.emulateMedia({ colorScheme: "dark" });
  await picture("dark");
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 390, height: 844 });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  check("it fits a phone", wide <= 390, wide);
  await picture("phone");
  check("no complaints, and nobody else was asked", complaints.length === 0, complaints);
} finally {
  await browser.close();
  service.removeAllListeners("exit");
  service.kill("SIGTERM");
  await new Promise((done) => service.on("exit", done));
  rmSync(folder, { recursive: true });
}
process.exit(failed ? 1 : 0);
