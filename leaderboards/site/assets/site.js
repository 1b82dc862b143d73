"use strict";

const root = document.documentElement;
const systemDark = matchMedia("(prefers-color-scheme: dark)");

// Some browsers keep no storage for pages from disk; the theme then lasts for one page.
function remembered() {
  try { return localStorage.getItem("theme"); } catch { return null; }
}
function remember(theme) {
  try { localStorage.setItem("theme", theme); } catch { /* nothing to be done */ }
}
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches);
if (["light", "dark"].includes(remembered())) root.dataset.theme = remembered();

// Figures -----------------------------------------------------------------------------------------

// The same mixture as that of .mark in the style sheet.
function shade(colour) {
  if (!isDark()) return colour;
  const part = (at) => Math.round((parseInt(colour.slice(at, at + 2), 16) + 255) / 2);
  return `rgb(${part(1)},${part(3)},${part(5)})`;
}

function themed(figure) {
  const ink = isDark() ? "#e3e6e9" : "#1b1f23", muted = isDark() ? "#9aa4ae" : "#59636e";
  const line = isDark() ? "#31373d" : "#e6e9ec", paper = isDark() ? "#14171a" : "#ffffff";
  const axis = { gridcolor: line, zeroline: false, linecolor: muted, ticks: "outside", tickcolor: line };
  const data = figure.data.map((trace) => {
    const meta = trace.meta || {};
    const colour = meta.ink ? muted : meta.colour && shade(meta.colour);
    const more = { ...trace, line: { ...trace.line, color: colour } };
    if (!trace.marker) return more;
    return {
      ...more,
      marker: { ...trace.marker, color: colour, line: { color: paper, width: 1 } },
      error_x: { ...trace.error_x, color: colour },
      error_y: { ...trace.error_y, color: colour },
    };
  });
  const given = figure.layout;
  const shapes = (given.shapes || []).map((shape) => ({
    ...shape,
    line: { ...shape.line, color: muted },
    fillcolor: shape.type === "rect" ? (isDark() ? "rgba(154,164,174,.15)" : "rgba(89,99,110,.1)") : undefined,
  }));
  return [data, {
    ...given, shapes,
    xaxis: { ...axis, ...given.xaxis, fixedrange: true },
    yaxis: { ...axis, ...given.yaxis, automargin: true, fixedrange: true },
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: ink },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    hoverlabel: { bgcolor: paper, bordercolor: muted, font: { color: ink }, align: "left" },
    hovermode: "closest", showlegend: false,
    margin: { l: 50, r: 10, t: 10, b: 45 },
  }];
}

async function draw() {
  if (!window.Plotly) return;
  for (const source of document.querySelectorAll("script[data-plot]")) {
    const place = document.getElementById(`plot-${source.dataset.plot}`), first = !place.data;
    const [data, layout] = themed(JSON.parse(source.textContent));
    const keys = [...document.getElementById(`legend-${source.dataset.plot}`).children];
    // A change of theme keeps what the reader has hidden.
    keys.forEach((key, at) => { data[at].visible = key.getAttribute("aria-pressed") === "true"; });
    await Plotly.react(place, data, layout, { responsive: true, displayModeBar: false });
    if (first) {
      keys.forEach((key, at) => key.addEventListener("click", () => {
        const visible = key.getAttribute("aria-pressed") !== "true";
        key.setAttribute("aria-pressed", String(visible));
        Plotly.restyle(place, { visible }, [at]);
      }));
      place.on("plotly_click", ({ points: [point] }) => {
        if (typeof point.customdata === "string") location.href = point.customdata;
      });
    }
  }
}

// Tables ------------------------------------------------------------------------------------------

const value = (cell) => cell.dataset.sort ?? cell.textContent.trim();

function sortable(table) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    const numeric = head.classList.contains("number");
    const keyed = [...body.rows].map((row) => [value(row.cells[column]), row]);
    keyed.sort(([a], [b]) => {
      // What is missing stands last in either direction.
      if (!a || !b) return !a - !b;
      return sign * (numeric ? Number(a) - Number(b) : a.localeCompare(b, "en", { numeric: true }));
    });
    body.append(...keyed.map(([, row]) => row));
  }));
}

const plain = (text) => text.toLowerCase().replace(/\s+/g, " ").trim();

function filterable(form) {
  const rows = [...document.getElementById(form.dataset.for).querySelectorAll("tbody tr")];
  const text = (row, column) => row.cells[column].textContent.trim();
  const selects = [...form.querySelectorAll("select")], search = form.querySelector("input");
  for (const select of selects) {
    const column = Number(select.dataset.column);
    for (const name of new Set(rows.map((row) => text(row, column)))) {
      if (name) select.add(new Option(name, name));
    }
  }
  const apply = () => {
    const wanted = plain(search.value);
    let shown = 0;
    for (const row of rows) {
      const fits = selects.every((s) => !s.value || text(row, Number(s.dataset.column)) === s.value);
      row.hidden = !(fits && plain(row.textContent).includes(wanted));
      shown += !row.hidden;
    }
    form.querySelector("output").value = `${shown} of ${rows.length}`;
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  apply();
}

async function copy(button) {
  const pre = document.getElementById(button.dataset.copy);
  getSelection().selectAllChildren(pre);
  // From disk the clipboard may be closed; the text is then selected, for the reader to copy.
  try {
    await navigator.clipboard.writeText(pre.textContent);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Selected";
  }
}

document.addEventListener("DOMContentLoaded", () => {
  const theme = document.getElementById("theme");
  const name = () => { theme.textContent = isDark() ? "Light theme" : "Dark theme"; };
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remember(root.dataset.theme);
    name();
    draw();
  });
  systemDark.addEventListener("change", () => { name(); draw(); });
  theme.hidden = false;
  name();
  document.querySelectorAll("table[data-sortable]").forEach(sortable);
  document.querySelectorAll("form.filters").forEach(filterable);
  document.querySelectorAll("button.copy").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  });
  draw();
});
