"use strict";

const root = document.documentElement;
const systemDark = matchMedia("(prefers-color-scheme: dark)");

// Theme: some browsers keep no storage for pages from disk; the choice then lasts for one page.
function storedTheme() {
  try { return localStorage.getItem("theme"); } catch { return null; }
}
function storeTheme(theme) {
  try { localStorage.setItem("theme", theme); } catch { /* not stored */ }
}
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches);
if (["light", "dark"].includes(storedTheme())) root.dataset.theme = storedTheme();

function setUpTheme() {
  const button = document.getElementById("theme");
  const name = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    storeTheme(root.dataset.theme);
    name();
  });
  systemDark.addEventListener("change", name);
  button.hidden = false;
  name();
}

const inHash = () => new URLSearchParams(location.hash.slice(1));
function setHash(words) {
  try { history.replaceState(null, "", `#${words}`); } catch { location.hash = words; }
}

// Front page: all answers were built before; the script shows the chosen one.
function setUpFront() {
  const { parts, questions } = window.leakboardFront, form = document.getElementById("question");
  const { hide, on, with: model, lose } = form.elements, at = (id) => document.getElementById(id);
  const names = new Map([hide, on, model, lose].flatMap((select) => [...select.options].map((one) => [one.value, one.text])));
  const OTHER = { inputs: "texts", members: "membership", model: "the model", attributes: "authors" };
  const first = Object.fromEntries([hide, on, model, lose].map((select) => [select.name, select.value]));

  function offer(select, values, wanted) {
    select.replaceChildren(...values.map((one) => new Option(names.get(one), one)));
    select.value = values.includes(wanted) ? wanted : values[0];
    select.disabled = !values.length;
  }
  // Shows the answer to a question; what was not measured is replaced by what was.
  function show(asked) {
    hide.value = asked.hide;
    lose.value = asked.lose;
    const tasks = questions[hide.value] ?? {};
    offer(on, Object.keys(tasks), asked.on);
    offer(model, Object.keys(tasks[on.value] ?? {}), asked.with);
    const one = tasks[on.value]?.[model.value];
    at("scroll").hidden = !one;
    if (!one) {
      at("answer").textContent = `${hide.value[0].toUpperCase()}${hide.value.slice(1)}: no defense made for it was measured.`;
      for (const id of ["evidence", "plot", "point"]) at(id).replaceChildren();
      at("unranked").hidden = true;
      return;
    }
    const [sentence, evidence, rows] = one.budgets[lose.value];
    at("answer").textContent = sentence;
    // HTML that the build wrote and escaped.
    at("evidence").innerHTML = parts[evidence];
    at("table").innerHTML = `${parts[one.head]}<tbody>${rows.map((row) => parts[row]).join("")}</tbody>`;
    at("plot").innerHTML = parts[one.plot];
    at("point").value = "";
    at("unranked").hidden = !parts[one.unranked].trim();
    at("unranked").open = !parts[one.plot];
    at("unranked").querySelector("ul").innerHTML = parts[one.unranked];
  }
  function read() {
    const given = inHash(), asked = { ...first }, unknown = [];
    for (const select of [hide, on, model, lose]) {
      const value = given.get(select.name), word = OTHER[value] ?? value;
      const known = select === hide ? [...hide.options].find((one) => one.value === word || one.value.startsWith(`${word} (`))?.value : word;
      if (value && names.has(known)) asked[select.name] = known;
      else if (value) unknown.push(value);
    }
    show(asked);
    at("unknown").hidden = !unknown.length;
    at("unknown").textContent = `Not measured here: ${unknown.join(", ")}. This is the answer for what the boxes show.`;
  }
  form.addEventListener("change", () => {
    show(Object.fromEntries(new FormData(form)));
    at("unknown").hidden = true;
    setHash(new URLSearchParams(new FormData(form)));
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const kind of ["pointerover", "focusin"]) {
    at("plot").addEventListener(kind, (event) => {
      const words = event.target.closest("a")?.querySelector("title");
      if (words) at("point").value = words.textContent;
    });
  }
  window.addEventListener("hashchange", () => { if (location.hash.includes("=")) read(); });
  form.hidden = false;
  read();
}

// Links to a folded part open it.
function openTarget() {
  const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) { target.open = true; target.scrollIntoView(); }
}

// Findings: a search keeps the sentences that hold all its words.
function setUpSearch() {
  const form = document.getElementById("search"), all = document.getElementById("all");
  const items = [...all.querySelectorAll("li")];
  function list() {
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let fit = 0;
    for (const one of items) {
      one.hidden = !words.every((word) => one.textContent.toLowerCase().includes(word));
      fit += !one.hidden;
    }
    for (const section of all.querySelectorAll("section")) section.hidden = !section.querySelector("li:not([hidden])");
    document.getElementById("headlines").hidden = words.length > 0;
    form.querySelector("output").value = words.length ? `${fit} of ${items.length}` : "";
  }
  form.addEventListener("input", list);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
}

// Records -----------------------------------------------------------------------------------------

function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
const number = (value, digits = 2) => (value === null || value === undefined ? "–" : value.toFixed(digits));

function setUpRecords() {
  const { words, records, pages } = window.leakboardRecords, FEW = 100;
  const table = document.getElementById("records"), form = document.getElementById("filters");
  const more = document.getElementById("more"), detail = document.getElementById("record");
  const page = (kind, name) => `${kind}s/${pages[name] ?? name}.html`;
  const all = records.map(([key, folder, task, model, defense, params, status, reason, metric, cut, seed, utility, leaks, submitted]) => ({
    key, folder: words[folder], task: words[task], model: words[model], defense: words[defense], params: words[params],
    status: words[status], reason: words[reason], metric: words[metric], cut, seed, utility, leaks, submitted,
  }));
  let limit = FEW;

  function row(one) {
    const made = document.createElement("tr"), key = element("th", "", { scope: "row" });
    key.append(element("a", one.key, { href: `#${one.key}` }));
    const defense = element("td", one.defense);
    defense.append(element("small", one.params));
    made.append(
      key, defense, element("td", one.task), element("td", `${one.model}, cut ${one.cut}`),
      element("td", one.seed, { class: "right" }), element("td", number(one.utility[0]), { class: "right" }),
      element("td", new Set(one.leaks.map((leak) => leak[0])).size, { class: "right" }), element("td", one.status),
    );
    [...made.cells].forEach((cell, at) => { if (at) cell.dataset.label = table.tHead.rows[0].cells[at].textContent; });
    return made;
  }
  function list() {
    const chosen = new FormData(form), wanted = chosen.get("search").toLowerCase().trim();
    const fits = all.filter((one) => ["task", "defense", "status"].every((name) => !chosen.get(name) || one[name] === chosen.get(name))
      && (!wanted || `${one.key} ${one.defense} ${one.params} ${one.task} ${one.model} ${one.folder} ${one.status} ${one.reason}`.toLowerCase().includes(wanted)));
    table.tBodies[0].replaceChildren(...fits.slice(0, limit).map(row));
    form.querySelector("output").value = `${fits.length} of ${all.length}`;
    more.hidden = fits.length <= limit;
    more.textContent = `Show all ${fits.length}`;
  }
  function pairs(entries) {
    const made = document.createElement("dl");
    for (const [name, ...content] of entries) {
      const value = document.createElement("dd");
      value.append(...content);
      made.append(element("dt", name), value);
    }
    return made;
  }
  function leakRow(leak) {
    const [attack, goal, metric, channel, reason] = leak.slice(0, 5).map((at) => words[at]), [success, baseline, n] = leak.slice(5);
    const made = document.createElement("tr"), name = element("th", "", { scope: "row" });
    name.append(element("a", attack, { href: page("attack", attack) }));
    made.append(
      name, element("td", goal), element("td", channel), element("td", metric), element("td", number(success), { class: "right" }),
      element("td", number(baseline), { class: "right" }), element("td", n || "–", { class: "right" }), element("td", reason, { class: "prose" }),
    );
    return made;
  }
  function show() {
    const one = all.find((record) => record.key === location.hash.slice(1));
    detail.hidden = !one;
    if (!one) return;
    const [value, low, high] = one.utility, heading = element("h2", "Record ");
    heading.append(element("code", one.key));
    const defense = element("a", one.defense, { href: page("defense", one.defense) });
    const entries = [
      ["defense", defense, one.params && ` (${one.params})`],
      ["task and model", `${one.task}, ${one.model}, cut ${one.cut}, seed ${one.seed}`],
      ["utility", one.utility.length ? `${number(value)} [${number(low)}, ${number(high)}] ${one.metric}` : "–"],
      ["file", element("code", `${one.folder}/${one.key}.json`)],
      ["run it again", element("code", `leakboard run --record ${one.key}`)],
    ];
    if (one.status !== "ok") entries.unshift([one.status, one.reason || "no reason was given"]);
    for (const [method, note, link] of one.submitted) {
      entries.push(["submitted as", `${method} `, note, " ", ...(link.startsWith("https://") ? [element("a", link, { href: link, rel: "noopener nofollow" })] : [])]);
    }
    const box = element("div", "", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Attacks" });
    const found = element("table", "", { class: "results" }), head = document.createElement("tr"), body = document.createElement("tbody");
    for (const name of ["attack", "goal", "reads", "metric", "success", "guessing or floor", "n", "remark"]) {
      head.append(element("th", name, { scope: "col" }));
    }
    const top = document.createElement("thead");
    top.append(head);
    body.append(...one.leaks.map(leakRow));
    found.append(element("caption", "What each attack read"), top, body);
    box.append(found);
    detail.replaceChildren(heading, pairs(entries), one.leaks.length ? box : element("p", "No attack ran on this record."));
    detail.scrollIntoView({ block: "nearest" });
  }
  for (const name of ["task", "defense", "status"]) {
    const values = [...new Set(all.map((one) => one[name]))].sort();
    form.elements[name].append(...values.map((value) => new Option(value, value)));
    const asked = inHash().get(name);
    if (values.includes(asked)) form.elements[name].value = asked;
  }
  form.addEventListener("input", () => { limit = FEW; list(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => { limit = Infinity; list(); });
  window.addEventListener("hashchange", show);
  form.hidden = table.hidden = false;
  list();
  show();
}

document.addEventListener("DOMContentLoaded", () => {
  setUpTheme();
  if (window.leakboardFront) setUpFront();
  if (document.getElementById("search")) setUpSearch();
  openTarget();
  window.addEventListener("hashchange", openTarget);
  if (window.leakboardRecords) setUpRecords();
});
