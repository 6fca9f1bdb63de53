"use strict";
(() => {
  const { all, upright } = window.conformax;
  const data = JSON.parse(document.getElementById("numbers").textContent);

  // Benchmarks: all, or one at its largest.
  document.getElementById("benchmark").addEventListener("change", ({ target }) => {
    for (const part of all("#results [data-benchmark]")) {
      part.classList.toggle("off", target.value !== "" && part.dataset.benchmark !== target.value);
    }
    for (const panels of all("#results .panels.columns-2")) panels.classList.toggle("single", target.value !== "");
  });

  // The level: a line in the curves, the lit group among bars, the table of numbers, the strata.
  const slider = document.getElementById("alpha");
  const levels = [...data.levels].sort((a, b) => b - a);
  const showStrata = (alpha) => {
    if (!all("[data-level]").some((tab) => tab.dataset.level === alpha)) return;
    for (const tab of all("[data-level]")) tab.setAttribute("aria-pressed", tab.dataset.level === alpha);
    for (const part of all("[data-strata-level]")) part.hidden = part.dataset.strataLevel !== alpha;
  };
  const showNumbers = (alpha) => {
    const level = data.levels.indexOf(alpha);
    all(".glance").forEach((panel) => {
      const benchmark = data.benchmarks.indexOf(panel.dataset.benchmark);
      all("tbody tr", panel).forEach((row, procedure) => {
        all("td", row).forEach((cell, metric) => {
          const [text, spread] = data.numbers[benchmark][level][procedure][metric];
          cell.firstChild.textContent = text;
          cell.lastChild.textContent = spread;
        });
      });
    });
    all(".chosen").forEach((part) => { part.textContent = alpha; });
  };
  const showLevel = (alpha) => {
    slider.setAttribute("aria-valuetext", alpha);
    document.getElementById("alpha-shown").textContent = alpha;
    showNumbers(alpha);
    showStrata(alpha);
    for (const svg of all("#results .panel svg")) {
      const marks = all(`.mark[data-at="α = ${alpha}"]`, svg);
      if (touched && marks.length && !svg.querySelector("[data-alpha]")) {
        const places = marks.map((mark) => Number(mark.dataset.px));
        upright(svg, (Math.min(...places) + Math.max(...places)) / 2, "guide");
      }
      const groups = all("[data-alpha]", svg);
      const lit = groups.some((group) => group.dataset.alpha === alpha);
      for (const group of groups) group.classList.toggle("dim", lit && touched && group.dataset.alpha !== alpha);
    }
  };
  // Until the reader moves the slider every group of bars is lit and no level is marked.
  let touched = false;
  slider.value = Math.max(0, levels.indexOf(document.querySelector(".chosen").textContent));
  slider.addEventListener("input", () => { touched = true; showLevel(levels[slider.value]); });
  for (const tab of all("[data-level]")) tab.addEventListener("click", () => showStrata(tab.dataset.level));
  if (levels.length) showLevel(levels[slider.value]);
})();
