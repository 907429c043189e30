// The page: a form, its state in the address, and the answers of the worker as elements. No text becomes markup.
const $ = (id) => document.getElementById(id);
const form = $("form");
const FIELDS = ["layout", "other", "text", "target", "property", "question", "at_most", "where"];
const USED = {
  layout: ["layout", "target", "property", "at_most", "where"],
  compare: ["layout", "other", "target", "question", "where"],
  message: ["text", "target"],
};
const DEFAULTS = Object.fromEntries(FIELDS.map((name) => [name, form.elements[name].value]));

let worker, waiting, serial, loaded;
const begun = performance.now();
window.timings = { load: null, questions: [] };

function start() {
  worker = new Worker("worker.js", { type: "module" });
  waiting = new Map();
  serial = 0;
  loaded = new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => {
      if (data.ready) {
        window.timings.load ??= performance.now() - begun;
        resolve();
      } else if (data.id === undefined) {
        reject(new Error(data.failed));
      } else {
        const { done, failed } = waiting.get(data.id);
        waiting.delete(data.id);
        if (data.failed) {
          failed(new Error(data.failed));
        } else {
          window.timings.questions.push(data.ms);
          done(data);
        }
      }
    };
    worker.onerror = (event) => reject(new Error(event.message || "the worker did not start"));
  });
  loaded.catch(() => {});
}

async function asked(request) {
  await loaded;
  serial += 1;
  const id = serial;
  return new Promise((done, failed) => {
    waiting.set(id, { done, failed });
    worker.postMessage({ id, request });
  });
}

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const mode = () => form.elements.mode.value;

function shownMode() {
  for (const field of form.querySelectorAll("[data-modes]")) {
    field.hidden = !field.dataset.modes.split(" ").includes(mode());
  }
  $("layout-label").textContent = mode() === "compare" ? "Layout" : "Layout, or a bare shape with a target";
}

function request() {
  const found = { mode: mode() };
  for (const name of USED[found.mode]) found[name] = form.elements[name].value;
  return found;
}

function address(what) {
  const said = new URLSearchParams();
  for (const [name, value] of Object.entries(what)) if (value) said.set(name, value);
  return `#${said}`;
}

function fill(hash) {
  const said = new URLSearchParams(hash.slice(1));
  const wanted = USED[said.get("mode")] ? said.get("mode") : "layout";
  form.elements.mode.value = wanted;
  for (const name of FIELDS) {
    const fallback = USED[wanted].includes(name) && said.has("mode") && name !== "property" && name !== "question";
    form.elements[name].value = said.get(name) ?? (fallback ? "" : DEFAULTS[name]);
  }
  shownMode();
}

// a point as Python writes it: (0, 4), or N = 2 for sizes
function place(at) {
  if (Array.isArray(at)) return `(${at.join(", ")}${at.length === 1 ? "," : ""})`;
  return Object.entries(at).map(([name, value]) => `${name} = ${value}`).join(", ");
}

function finding(one) {
  const box = element("div", { class: `finding ${one.verdict}` });
  box.append(
    element("p", {}, element("span", { class: "verdict" }, one.verdict || "not asked"), ` ${one.question}`),
  );
  if (one.reason) box.append(element("p", {}, one.reason));
  if (one.counterexample) {
    const points = Object.entries(one.counterexample).map(([name, at]) => `${name} ${place(at)}`);
    box.append(element("p", { class: "counterexample" }, `smallest counterexample: ${points.join(", ")}`));
  }
  if (one.verdict) box.append(element("details", {}, element("summary", {}, "In full"), element("pre", {}, one.text)));
  return box;
}

function cells(found, what) {
  const marked = new Set(
    found.findings.flatMap((one) => Object.values(one.counterexample ?? {}).map((at) => JSON.stringify(at))),
  );
  const table = element("table", { class: "cells" });
  const head = element("tr", {}, element("td"));
  for (const cell of found.cells[0]) head.append(element("th", { scope: "col" }, String(cell.index.at(-1) ?? 0)));
  table.append(element("thead", {}, head));
  const body = element("tbody");
  const told = element("pre", { id: "told", role: "status", "aria-live": "polite" }, "Click an element.");
  for (const row of found.cells) {
    const line = element("tr", {}, element("th", { scope: "row" }, String(row[0].index.at(-2) ?? 0)));
    for (const cell of row) {
      const name = `(${cell.index.join(", ")})`;
      const button = element("button", { type: "button", "aria-pressed": "false", "aria-label": `element ${name}, at ${cell.short}`, "data-index": cell.index.join(",") }, cell.short);
      if (marked.has(JSON.stringify(cell.index))) button.classList.add("found");
      button.addEventListener("click", async () => {
        for (const other of table.querySelectorAll('[aria-pressed="true"]')) other.setAttribute("aria-pressed", "false");
        button.setAttribute("aria-pressed", "true");
        const { found: at } = await asked({ ...what, mode: "cell", index: cell.index });
        told.textContent = at.error || [`element ${name} is at ${at.places.join("; ")}`, at.there].filter(Boolean).join("\n");
      });
      line.append(button.parentNode ?? element("td", {}, button));
    }
    body.append(line);
  }
  table.append(body);
  return [
    element("h2", {}, "Where each element is"),
    element("div", { class: "wide", role: "region", "aria-label": "Elements", tabindex: "0" }, table),
    told,
  ];
}

function picture(found) {
  const parts = [element("h2", {}, "Picture")];
  if (found.svg) {
    const image = element("img", { class: "picture", alt: found.said.split("\n").slice(0, 3).join(". ") });
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(found.svg)}`;
    parts.push(element("div", { class: "wide", role: "region", "aria-label": "Picture", tabindex: "0" }, image));
    parts.push(element("details", {}, element("summary", {}, "As text"), element("pre", {}, found.said)));
  } else if (found.said) {
    parts.push(element("pre", {}, found.said));
  }
  return parts;
}

function messages(found) {
  const parts = [element("h2", {}, "What it means")];
  for (const one of found.messages) {
    const box = element("div", { class: `finding ${one.cause ? "told" : "unknown"}` });
    box.append(element("p", {}, element("span", { class: "verdict" }, one.kind), ` in line ${one.line}`));
    box.append(element("p", {}, one.cause || `unknown: ${one.reason}`));
    for (const array of one.arrays) {
      const link = address({ mode: "layout", layout: array.shape, property: "padding" });
      box.append(element("p", {}, element("a", { href: link }, array.shape), ` ${[...array.padded, array.kind, array.note].filter(Boolean).join("; ")}`));
    }
    for (const fix of one.fixes) box.append(element("p", { class: "less" }, `would waste less: ${fix}`));
    parts.push(box);
  }
  parts.push(element("details", {}, element("summary", {}, "In full"), element("pre", {}, found.said)));
  return parts;
}

function show(found, what) {
  const result = $("result");
  result.hidden = false;
  result.replaceChildren();
  if (found.error) {
    result.append(element("pre", { class: "error", role: "alert" }, found.error));
    return;
  }
  if (found.subject) result.append(element("h2", {}, found.subject));
  if (found.assumed) result.append(element("p", { class: "assumed" }, `Read as ${found.assumed}`));
  for (const one of found.findings ?? []) result.append(finding(one));
  if (found.padding) result.append(element("p", { class: "padding" }, found.padding));
  if (found.less?.length) {
    result.append(element("h2", {}, "What would waste less"));
    result.append(element("ul", {}, ...found.less.map((fix) => element("li", { class: "less" }, fix))));
  }
  if (found.messages) result.append(...messages(found));
  else result.append(...picture(found));
  if (found.cells?.length) result.append(...cells(found, what));
}

let turn = 0;
async function prove() {
  turn += 1;
  const own = turn;
  const what = request();
  $("link").href = address(what);
  $("ask").disabled = true;
  $("stop").hidden = window.timings.load === null;
  const told = window.timings.load === null ? null : setTimeout(() => ($("status").textContent = "Working"), 300);
  try {
    const { found, ms } = await asked(what);
    if (own !== turn) return;
    show(found, what);
    $("status").textContent = `Answered in ${Math.max(1, Math.round(ms))} ms, in this browser.`;
  } catch (error) {
    if (own !== turn) return;
    show({ error: `no answer: ${error.message}` }, what);
    $("status").textContent = "";
    restart();
  } finally {
    clearTimeout(told);
    if (own === turn) {
      $("ask").disabled = false;
      $("stop").hidden = true;
    }
  }
}

function restart() {
  worker.terminate();
  start();
}

form.addEventListener("change", (event) => {
  if (event.target.name === "mode") shownMode();
  $("link").href = address(request());
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const wanted = address(request());
  if (wanted === location.hash) prove();
  else location.hash = wanted;
});
$("stop").addEventListener("click", () => {
  turn += 1;
  restart();
  $("ask").disabled = false;
  $("stop").hidden = true;
  $("status").textContent = "Stopped. Ask fewer elements, or on the command line.";
});
window.addEventListener("hashchange", () => {
  fill(location.hash);
  prove();
});

start();
fill(location.hash);
prove();
loaded.catch((error) => {
  $("status").textContent = `Python could not be loaded: ${error.message}`;
});
if ("serviceWorker" in navigator) {
  // the files of one build are kept, so that the page opens without a network
  navigator.serviceWorker.register("sw.js").then(
    () => navigator.serviceWorker.ready.then(() => (document.documentElement.dataset.offline = "ready")),
    () => {},
  );
}
