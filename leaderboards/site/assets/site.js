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
  const { hide, on, lose } = form.elements;
  const first = [hide.value, on.value, lose.value];
  const places = [...on.options].map((option) => option.value);

  function show() {
    const known = questions[hide.value], place = on.value;
    on.replaceChildren(...places.filter((one) => one in known).map((one) => new Option(one, one)));
    if (place in known) on.value = place;
    const { plot, unranked, budgets } = known[on.value], [sentence, table] = budgets[lose.value];
    document.getElementById("answer").textContent = sentence;
    // HTML that the build wrote and escaped.
    document.getElementById("table").innerHTML = parts[table];
    document.getElementById("plot").innerHTML = parts[plot];
    const details = document.getElementById("unranked");
    details.hidden = !parts[unranked];
    details.querySelector("ul").innerHTML = parts[unranked];
  }
  function choose(select, value) {
    if (value !== null && [...select.options].some((one) => one.value === value)) select.value = value;
  }
  function read() {
    const asked = inHash();
    choose(hide, asked.get("hide") ?? first[0]);
    on.replaceChildren(...places.map((one) => new Option(one, one)));
    choose(on, asked.get("on") ?? first[1]);
    choose(lose, asked.get("lose") ?? first[2]);
    show();
  }
  form.addEventListener("change", () => {
    show();
    setHash(new URLSearchParams({ hide: hide.value, on: on.value, lose: lose.value }));
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", read);
  form.hidden = false;
  read();
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
  if (window.leakboardRecords) setUpRecords();
});
