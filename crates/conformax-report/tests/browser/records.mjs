// The study's records as a browser test needs them: means over splits by benchmark, procedure, level and metric.

/** Fields of one line, quotes undone. */
function fields(line) {
  const found = line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g);
  const texts = [...found].map(([, text]) => (text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text));
  return texts.slice(0, -1);
}

/** One object per line of results.csv. */
export function readRecords(csv) {
  const [header, ...lines] = csv.trimEnd().split(/\r?\n/);
  const names = fields(header);
  return lines.map((line) => Object.fromEntries(fields(line).map((text, i) => [names[i], text])));
}

const METRICS = [
  "coverage", "average_size", "singleton_ratio", "singleton_coverage", "empty_ratio", "sscv", "covgap",
];

/** Mean of each metric over the splits that have it, by `benchmark|procedure|alpha|metric`. */
export function meansOf(records) {
  const values = new Map();
  for (const record of records) {
    for (const metric of METRICS) {
      if (record[metric] === undefined) throw new Error(`results.csv has no column ${metric}`);
      if (record[metric] === "") continue;
      const key = [record.benchmark, record.procedure, String(Number(record.alpha)), metric].join("|");
      values.set(key, [...(values.get(key) ?? []), Number(record[metric])]);
    }
  }
  return new Map([...values].map(([key, list]) => [key, list.reduce((sum, one) => sum + one, 0) / list.length]));
}
