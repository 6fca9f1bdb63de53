"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const data = JSON.parse(document.getElementById("numbers").textContent);
  const root = document.documentElement;

  // Letters keep their size on the screen whatever the width of a drawing.
  const LARGEST = 14.5 / 12;
  const fit = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      if (!contentRect.width) continue;
      target.style.setProperty("--unit", Math.min(LARGEST, target.viewBox.baseVal.width / contentRect.width));
    }
  });
  all(".panel svg").forEach((svg) => fit.observe(svg));

  // Light and dark: the system's choice until the reader makes another.
  const remembered = (() => {
    try { return localStorage.getItem("conformax-theme"); } catch { return null; }
  })();
  if (remembered) root.dataset.theme = remembered;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("conformax-theme", root.dataset.theme); } catch { /* A page from disk may not store. */ }
  });

  // Procedures: hide and show wherever they are drawn or listed.
  for (const chip of all("[data-toggle]")) {
    chip.addEventListener("click", () => {
      const shown = chip.getAttribute("aria-pressed") !== "true";
      chip.setAttribute("aria-pressed", shown);
      for (const part of all("#results [data-procedure]")) {
        if (part.dataset.procedure === chip.dataset.toggle) part.classList.toggle("off", !shown);
      }
    });
  }

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
  const make = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const upright = (svg, x, name) => {
    const height = svg.viewBox.baseVal.height;
    let line = svg.querySelector("." + name);
    if (!line) line = svg.appendChild(make("line", { class: name }));
    for (const [key, value] of Object.entries({ x1: x, x2: x, y1: 26, y2: height - 46 })) line.setAttribute(key, value);
    return line;
  };
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

  // Hovering, touching or the arrow keys: all values at the nearest place along the axis.
  const tip = document.getElementById("tip");
  const columns = (svg) => {
    const places = new Map();
    for (const mark of all("[data-at]", svg)) {
      if (!mark.dataset.at || !mark.getClientRects().length) continue;
      if (!places.has(mark.dataset.at)) places.set(mark.dataset.at, []);
      places.get(mark.dataset.at).push(mark);
    }
    return [...places].map(([at, marks]) => ({
      at, marks, x: marks.reduce((sum, mark) => sum + Number(mark.dataset.px), 0) / marks.length,
    })).sort((a, b) => a.x - b.x);
  };
  const tell = (svg, column, left, top) => {
    const marks = [...column.marks];
    if (!marks[0].classList.contains("bar")) {
      marks.sort((a, b) => Number.parseFloat(b.dataset.value) - Number.parseFloat(a.dataset.value));
    }
    tip.replaceChildren(Object.assign(document.createElement("b"), { textContent: column.at }));
    for (const mark of marks) {
      const line = document.createElement("div");
      const name = document.createElement("span");
      const label = mark.closest("[data-label]");
      if (label) {
        const dot = document.createElement("i");
        dot.style.background = getComputedStyle(mark).fill;
        name.append(dot, label.dataset.label);
      }
      line.append(name, Object.assign(document.createElement("span"), { textContent: mark.dataset.value }));
      tip.append(line);
    }
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const x = left + 16 + width > innerWidth ? Math.max(4, left - 16 - width) : left + 16;
    tip.style.transform = `translate(${x}px,${Math.max(4, Math.min(top - height / 2, innerHeight - height - 4))}px)`;
    if (svg.querySelector(".base")) upright(svg, column.x, "cursor");
  };
  const hush = (svg) => {
    tip.hidden = true;
    svg.querySelector(".cursor")?.remove();
  };
  for (const svg of all(".panel svg")) {
    const scale = () => svg.viewBox.baseVal.width / svg.getBoundingClientRect().width;
    const hover = (event) => {
      const found = columns(svg);
      if (!found.length) return;
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) * scale();
      const byRow = !svg.querySelector(".base");
      const distance = (column) => byRow
        ? Math.abs(column.marks[0].getBoundingClientRect().top + 8 - event.clientY)
        : Math.abs(column.x - x);
      const near = found.reduce((best, column) => (distance(column) < distance(best) ? column : best));
      tell(svg, near, event.clientX, event.clientY);
    };
    svg.addEventListener("pointermove", hover);
    svg.addEventListener("pointerdown", hover);
    svg.addEventListener("pointerleave", () => hush(svg));
    let place = -1;
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const found = columns(svg);
      if (!found.length) return;
      place = Math.max(0, Math.min(found.length - 1, place + step));
      const box = svg.getBoundingClientRect();
      tell(svg, found[place], box.left + found[place].x / scale(), box.top + box.height / 2);
    });
    svg.addEventListener("blur", () => { place = -1; hush(svg); });
  }
})();
