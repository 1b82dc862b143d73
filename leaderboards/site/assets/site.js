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

// What the reader chose -----------------------------------------------------------------------------

// It stands in the address, so that a link shows the same; what is as it was given stands there not.
const asked = new URLSearchParams(location.search);
function ask(name, value, given = "") {
  if (value === given) asked.delete(name); else asked.set(name, value);
  const words = asked.toString();
  try {
    history.replaceState(null, "", (words ? `?${words}` : location.pathname) + location.hash);
  } catch { /* some browsers keep the address of pages from disk */ }
}

// Tables ------------------------------------------------------------------------------------------

const plain = (text) => text.toLowerCase().replace(/\s+/g, " ").trim();
const value = (cell) => cell.dataset.sort ?? cell.textContent.trim();
const heads = (table) => [...table.tHead.rows[0].cells];
const named = (head) => head.textContent.trim();
const column = (table, name) => heads(table).findIndex((head) => named(head) === name);
const tables = (form) => form.dataset.for.split(" ").map((id) => document.querySelector(`[id="${id}"] table`));

function sorted(table, name, falling) {
  const body = table.tBodies[0], at = column(table, name), head = heads(table)[at];
  if (!head) return;
  heads(table).forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", falling ? "descending" : "ascending");
  const sign = falling ? -1 : 1, numeric = head.classList.contains("number");
  const keyed = [...body.rows].map((row) => [value(row.cells[at]), row]);
  keyed.sort(([a], [b]) => {
    // What is missing stands last in either direction.
    if (!a || !b) return !a - !b;
    return sign * (numeric ? Number(a) - Number(b) : a.localeCompare(b, "en", { numeric: true }));
  });
  body.append(...keyed.map(([, row]) => row));
}

function sortable(table) {
  const id = table.closest("section").id, by = table.closest("section").querySelector("select.by");
  const sort = (name, falling) => {
    sorted(table, name, falling);
    ask(`${id}.sort`, `${name}:${falling ? "falling" : "rising"}`);
    if (by) by.value = `${name}:${falling ? "falling" : "rising"}`;
  };
  for (const head of heads(table)) {
    head.querySelector("button").addEventListener("click", () => {
      sort(named(head), head.getAttribute("aria-sort") === "ascending");
    });
    for (const way of ["rising", "falling"]) by?.add(new Option(`${named(head)}, ${way}`, `${named(head)}:${way}`));
  }
  const parts = (text) => [text.slice(0, text.lastIndexOf(":")), text.endsWith(":falling")];
  by?.addEventListener("change", () => by.value && sort(...parts(by.value)));
  const given = asked.get(`${id}.sort`);
  if (given) { sorted(table, ...parts(given)); if (by) by.value = given; }
}

// A row is shown where no form has anything against it.
const against = new WeakMap();
function show(row, form, fits) {
  if (!against.has(row)) against.set(row, new Set());
  against.get(row)[fits ? "delete" : "add"](form);
  row.hidden = against.get(row).size > 0;
}

function filterable(form) {
  const every = tables(form), first = form.dataset.name ? `${form.dataset.name}.` : "";
  const selects = [...form.querySelectorAll("select[data-column]")], search = form.querySelector("input[type=search]");
  const text = (table, row, name) => row.cells[column(table, name)]?.textContent.trim();
  for (const select of selects) {
    const name = select.dataset.column, found = new Set();
    for (const table of every) for (const row of table.tBodies[0].rows) found.add(text(table, row, name));
    for (const one of found) if (one) select.add(new Option(one, one));
    select.closest("label").hidden = found.size < 2;
    select.value = asked.get(first + name) ?? select.dataset.given ?? "";
    if (select.selectedIndex < 0) select.value = "";
  }
  if (search) search.value = asked.get(`${first}search`) ?? "";
  const apply = () => {
    const wanted = plain(search?.value ?? "");
    let shown = 0, all = 0;
    for (const table of every) {
      const places = selects.map((select) => [column(table, select.dataset.column), select.value]);
      let left = 0;
      for (const row of table.tBodies[0].rows) {
        const fits = places.every(([at, one]) => !one || at < 0 || row.cells[at].textContent.trim() === one);
        show(row, form, fits && plain(row.textContent).includes(wanted));
        left += !row.hidden;
      }
      const section = table.closest("section"), rest = section.querySelector("button.rest");
      section.classList.toggle("empty", !left);
      if (rest) {
        rest.hidden = left <= FEW || table.classList.contains("whole");
        rest.textContent = `Show all ${left}`;
      }
      // What was chosen for the whole page need not stand in each row.
      if (!first) for (const [at, one] of places.filter(([at]) => at >= 0)) {
        for (const row of table.rows) row.cells[at].classList.toggle("said", Boolean(one));
        section.querySelectorAll(".columns label")[at - 1]?.classList.toggle("said", Boolean(one));
      }
      shown += left;
      all += table.tBodies[0].rows.length;
    }
    const told = form.querySelector("output");
    if (told) told.value = `${shown} of ${all}`;
  };
  form.addEventListener("input", (event) => {
    if (event.target === search) ask(`${first}search`, search.value);
    const { column: name, given } = event.target.dataset;
    if (name) ask(first + name, event.target.value, given ?? "");
    // What one form leaves is counted by the others.
    document.dispatchEvent(new Event("chosen"));
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("chosen", apply);
  form.hidden = false;
  apply();
}

// Columns that a reader leaves out.
function choosable(list) {
  const section = list.closest("section"), table = section.querySelector("table"), key = `${section.id}.without`;
  const without = new Set((asked.get(key) ?? "").split("|").filter(Boolean));
  const apply = () => {
    const hidden = heads(table).map((head) => without.has(named(head)));
    for (const row of table.rows) [...row.cells].forEach((cell, at) => { cell.hidden = hidden[at]; });
    ask(key, [...without].join("|"));
  };
  heads(table).slice(1).forEach((head) => {
    const label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox";
    box.checked = !without.has(named(head));
    box.addEventListener("change", () => { without[box.checked ? "delete" : "add"](named(head)); apply(); });
    label.append(box, ` ${named(head)}`);
    list.append(label);
  });
  if (without.size) apply();
}

// What is shown of a table; a number and its interval in columns of their own.
function csv(table) {
  const seen = [...table.rows].filter((row) => !row.hidden);
  const small = (cell) => cell.querySelector("small")?.textContent.trim() ?? "";
  const large = (cell) => [...cell.childNodes].filter((node) => node.nodeName !== "SMALL").map((node) => node.textContent).join("").trim();
  const quoted = (text) => {
    // A text that a spreadsheet would run is made a text.
    const safe = /^[=+@\t\r]|^-(?![\d.])/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const kept = heads(table).map((head, at) => [at, named(head)]).filter(([at]) => !heads(table)[at].hidden);
  const columns = kept.flatMap(([at, name]) => {
    const more = seen.slice(1).some((row) => small(row.cells[at]));
    return [[name, (row) => large(row.cells[at])], ...(more ? [[`${name}: more`, (row) => small(row.cells[at])]] : [])];
  });
  const lines = [columns.map(([name]) => name), ...seen.slice(1).map((row) => columns.map(([, read]) => read(row)))];
  return lines.map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
}

function download(button) {
  const section = button.closest("section"), link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv(section.querySelector("table"))], { type: "text/csv" }));
  link.download = `${section.id}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// On a phone a row is a card; each entry there says what it is. The style sheet shows the first few.
const FEW = 6;
const phone = matchMedia("(max-width: 40rem)");
function carded(table) {
  const label = () => {
    if (!phone.matches || table.classList.contains("cards")) return;
    const names = heads(table).map(named);
    for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, at) => {
      cell.dataset.label = names[at];
      cell.classList.toggle("missing", ["", "–"].includes(cell.textContent.trim()));
    });
    table.classList.add("cards");
  };
  phone.addEventListener("change", label);
  label();
  const rest = table.closest("section")?.querySelector("button.rest");
  rest?.addEventListener("click", () => { table.classList.add("whole"); rest.hidden = true; });
}

async function link(anchor) {
  const address = `${location.href.split("#")[0]}${anchor.getAttribute("href")}`;
  try {
    await navigator.clipboard.writeText(address);
    anchor.textContent = "copied";
  } catch { /* the address line has it then */ }
}

// Two columns beside each other ---------------------------------------------------------------------

function comparing(form) {
  const [table] = [document.getElementById(form.dataset.beside)], selects = [...form.querySelectorAll("select")];
  for (const select of selects) {
    for (const head of heads(table).slice(1)) select.add(new Option(named(head), named(head)));
    select.value = asked.get(select.name) ?? select.dataset.given;
    if (select.selectedIndex < 0) select.value = select.dataset.given;
  }
  const apply = () => {
    const shown = new Set([0, ...selects.map((select) => column(table, select.value))]);
    for (const row of table.rows) {
      if (row.classList.contains("group")) {
        row.cells[0].colSpan = shown.size;  // more would be columns, too, and take their share of the width
        continue;
      }
      [...row.cells].forEach((cell, at) => { cell.hidden = !shown.has(at); });
      row.hidden = row.parentNode !== table.tHead && ![...shown].slice(1).some((at) => row.cells[at]?.textContent.trim());
    }
    for (const body of table.tBodies) body.hidden = [...body.rows].slice(1).every((row) => row.hidden);
  };
  form.addEventListener("input", (event) => { ask(event.target.name, event.target.value, event.target.dataset.given); apply(); });
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
  document.querySelectorAll(".scroll table:not(.pairs)").forEach(carded);
  document.querySelectorAll("form.beside").forEach(comparing);
  document.querySelectorAll(".columns div").forEach(choosable);
  document.querySelectorAll("form.filters").forEach(filterable);
  document.querySelectorAll("button.csv").forEach((button) => button.addEventListener("click", () => download(button)));
  document.querySelectorAll("a.anchor").forEach((anchor) => anchor.addEventListener("click", () => link(anchor)));
  document.querySelectorAll("button.copy").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  });
  draw();
});
