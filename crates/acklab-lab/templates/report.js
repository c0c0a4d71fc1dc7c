// The page's behaviour: plots, sortable tables, the choice of a row, saving a drawing. It fetches
// nothing; the plots' runtime is unpacked from the page itself.
"use strict";

const page = document.documentElement;

// Columns to the row objects that Vega-Lite reads; a dictionary column is {values, index}.
function rowsOf(columns) {
  const names = Object.keys(columns);
  const cells = names.map((name) => {
    const column = columns[name];
    return Array.isArray(column) ? column : column.index.map((code) => column.values[code]);
  });
  return cells[0].map((_, row) =>
    Object.fromEntries(names.map((name, index) => [name, cells[index][row]])));
}

async function unpackRuntime() {
  const packed = document.getElementById("vega-runtime");
  if (!packed) return false;
  if (typeof DecompressionStream === "undefined") {
    throw new Error("This browser is too old for the plots (Chrome 80, Firefox 113 or Safari 16.4 draw them). Tables and text are complete.");
  }
  const bytes = Uint8Array.from(atob(packed.textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const runtime = document.createElement("script");
  runtime.textContent = await new Response(stream).text();
  document.head.append(runtime);
  return true;
}

async function draw(figure) {
  if (figure.dataset.drawn) return;
  figure.dataset.drawn = "begun";
  const target = figure.querySelector(".drawing");
  const {spec, data} = JSON.parse(figure.querySelector("script").textContent);
  spec.datasets = {};
  for (const [name, columns] of Object.entries(data)) spec.datasets[name] = rowsOf(columns);
  if (target.clientWidth < 560 && spec.config.legend) {
    spec.config.legend.columns = 1;
    spec.config.legend.labelLimit = target.clientWidth - 110;
  }
  target.replaceChildren();
  const compiled = vegaLite.compile(spec).spec;
  await new vega.View(vega.parse(compiled), {renderer: "svg", container: target, hover: true}).runAsync();
  figure.dataset.drawn = "yes";
}

async function drawVisible() {
  for (const figure of document.querySelectorAll("figure.plot")) {
    if (!figure.closest("[hidden]")) await draw(figure);
  }
}

function complain(error) {
  console.error(error);
  page.dataset.plots = "failed";
  for (const figure of document.querySelectorAll("figure.plot:not([data-drawn=yes]) .drawing")) {
    figure.textContent = error.message;
  }
}

// Drawings use the page's colour variables; a saved file has to carry the colours themselves.
function save(figure) {
  const svg = figure.querySelector("svg").cloneNode(true);
  const style = getComputedStyle(page);
  svg.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  svg.style.background = style.getPropertyValue("--card");
  const text = svg.outerHTML.replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], {type: "image/svg+xml"}));
  link.download = figure.querySelector("h3").textContent.replace(/[^\w]+/g, "-").slice(0, 60) + ".svg";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function offerSaving(figure) {
  const button = document.createElement("button");
  button.className = "save";
  button.type = "button";
  button.textContent = "Save as SVG";
  button.addEventListener("click", () => save(figure));
  figure.prepend(button);
}

function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number") return -1;
    if (typeof b === "number") return 1;
    return a.localeCompare(b, undefined, {numeric: true});
  };
  heads.forEach((head, column) => {
    head.dataset.sortable = "";
    head.tabIndex = 0;
    const sort = () => {
      // Numbers are looked at from the largest down, words from A.
      const first = head.classList.contains("right") ? "descending" : "ascending";
      const other = first === "ascending" ? "descending" : "ascending";
      const order = head.ariaSort === first ? other : first;
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      body.append(...[...body.rows].sort((a, b) => sign * compare(key(a, column), key(b, column))));
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter") sort();
    });
  });
}

function choose(choice, scroll) {
  let first;
  for (const section of document.querySelectorAll("section[data-choice]")) {
    section.hidden = section.dataset.choice !== choice;
    if (!section.hidden) first = first ?? section;
  }
  for (const row of document.querySelectorAll("tr[data-shows]")) {
    row.setAttribute("aria-selected", row.dataset.shows === choice);
  }
  fitTables();
  if (window.vega) drawVisible().catch(complain);
  if (scroll && first) first.scrollIntoView({behavior: "smooth", block: "start"});
}

// Tables that are too wide are set smaller; what is still too wide is slid.
function fitTables() {
  for (const box of document.querySelectorAll(".table:not(.dense)")) {
    if (box.scrollWidth > box.clientWidth) box.classList.add("dense");
  }
}

function offerChoice() {
  const first = document.querySelector("section[data-choice]");
  if (!first) return;
  for (const row of document.querySelectorAll("tr[data-shows]")) {
    row.tabIndex = 0;
    row.addEventListener("click", () => choose(row.dataset.shows, true));
    row.addEventListener("keydown", (event) => {
      if (event.key === "Enter") choose(row.dataset.shows, true);
    });
  }
  choose(first.dataset.choice, false);
}

document.querySelectorAll("table").forEach(makeSortable);
document.querySelectorAll("figure").forEach(offerSaving);
fitTables();
offerChoice();
unpackRuntime()
  .then((has) => (has ? drawVisible() : undefined))
  .then(() => { page.dataset.plots = "drawn"; })
  .catch(complain);
