// How are several rankings compared? As lists, with lines that connect equal documents, and in words.

import { element, title, visuallyHidden } from "./dom.js";
import { arrange, drawUnpressed } from "./ranked_list.js";

const FEWEST_COMMON = 5;  // documents in both rankings, for a correlation that says something
const SVG = "http://www.w3.org/2000/svg";

// Shows the columns with empty rows, before any ranking is known.
export function showColumns(section, names, rows) {
  clearRankings(section);
  section.querySelector(".lists").replaceChildren(...names.map(name => element("div", {},
    element("h2", {}, name), element("p", { class: "note" }, "Waiting…"),
    element("ol", {}, ...Array.from({ length: rows }, () => element("li", { class: "empty" }))))));
}

// Shows what is known of a ranking. open: called with the hit that the user selects. unit: what is read.
export function showRanking(section, column, name, answer, open, unit, final = false) {
  const [heading, note, list] = section.querySelector(".lists").children[column].children, read = answer.pairs - answer.embedded;
  heading.textContent = name;
  const told = read ? `${read.toLocaleString("en")} ${unit} read` : "";
  note.textContent = final ? `${told || "Ready"}${answer.exact ? "" : ", not complete"}` : told || "Ranking…";
  drawUnpressed(list, () => drawRanking(section, list, answer.hits, open));
}

function drawRanking(section, list, hits, open) {
  const existing = new Map([...list.children].map(item => [item.dataset.id, item]));
  const items = hits.map(hit => existing.get(hit.doc_id) ?? createItem(section, hit, open));
  items.forEach((item, index) => {
    item.hit = hits[index];
    item.querySelector(".place").textContent = String(index + 1);
  });
  arrange(list, items);
}

function createItem(section, hit, open) {
  const highlight = on => () => {
    for (const node of section.querySelectorAll("li, path")) node.classList.toggle("highlighted", on && node.dataset.id === hit.doc_id);
  };
  const item = element("li", { "data-id": hit.doc_id, onmouseenter: highlight(true), onmouseleave: highlight(false), onfocusin: highlight(true), onfocusout: highlight(false) },
    element("span", { class: "place" }), element("button", { type: "button", class: "title", onclick: () => open(item.hit) }, title(hit)));
  return item;
}

export function clearRankings(section) {
  section.querySelector(".lists").replaceChildren();
  section.querySelector("svg").replaceChildren();
  section.querySelector("#changes").textContent = "The same query, ranked in several ways. Lines connect the same document in neighbouring rankings.";
}

// When all rankings are known: lines, and what changed from the first to the last. rankings: [name, answer] pairs.
export const showChanges = (section, rankings) => drawUnpressed(section, () => drawChanges(section, rankings));

function drawChanges(section, rankings) {
  for (const item of section.querySelectorAll("li[data-id]"))
    item.querySelector(".place").append(visuallyHidden(` ${describeRanks(item.dataset.id, rankings)}`));
  drawLines(section);
  const [[first, before], [last, after]] = [rankings[0], rankings.at(-1)];
  if (rankings.length > 1 && after.hits.length) section.querySelector("#changes").textContent = `From “${first}” to “${last}”: ${changes(before.hits, after.hits)}`;
}

function describeRanks(id, rankings) {
  return rankings.map(([name, answer]) => {
    const index = answer.hits.findIndex(other => other.doc_id === id);
    return `${name}: ${index < 0 ? "not among these" : index + 1}`;
  }).join(", ");
}

// How two rankings differ, in words.
function changes(before, after) {
  const old = new Map(before.map((hit, index) => [hit.doc_id, index + 1]));
  const common = after.map((hit, index) => ({ hit, from: old.get(hit.doc_id), to: index + 1 })).filter(({ from }) => from);
  const moved = common.toSorted((a, b) => Math.abs(b.from - b.to) - Math.abs(a.from - a.to))[0];
  const sentences = [`${common.length} of ${after.length} documents are in both`];
  if (common.length >= FEWEST_COMMON) sentences.push(`Kendall’s τ of these is ${kendall(common).toFixed(2).replace("-", "−").replace(/^(−?)0\./, "$1.")} (1: the same order, −1: reversed)`);
  if (moved && moved.from !== moved.to) sentences.push(`“${title(moved.hit)}” moved most, from ${moved.from} to ${moved.to}`);
  if (!old.has(after[0].doc_id)) sentences.push(`the new first, “${title(after[0])}”, was not among the first ${before.length}`);
  return `${sentences.join("; ")}.`;
}

// Kendall's τ: pairs in the same order less pairs in the opposite one, as a share of all.
function kendall(ranks) {
  let sum = 0;
  for (let i = 0; i < ranks.length; i++)
    for (let j = i + 1; j < ranks.length; j++) sum += Math.sign((ranks[i].from - ranks[j].from) * (ranks[i].to - ranks[j].to));
  return sum / (ranks.length * (ranks.length - 1) / 2);
}

export function drawLines(section) {
  const frame = section.querySelector(".lists"), svg = section.querySelector("svg");
  const origin = frame.getBoundingClientRect();
  svg.setAttribute("width", frame.scrollWidth);
  svg.setAttribute("height", frame.scrollHeight);
  const columns = [...frame.children].map(column => [...column.querySelectorAll("li")]);
  const lines = [];
  for (let n = 0; n + 1 < columns.length; n++) {
    const next = new Map(columns[n + 1].map((item, index) => [item.dataset.id, [item, index]]));
    columns[n].forEach((item, index) => {
      const match = next.get(item.dataset.id);
      if (!match || !item.dataset.id) return;
      const from = item.getBoundingClientRect(), to = match[0].getBoundingClientRect();
      const x1 = from.right - origin.left, x2 = to.left - origin.left;
      const y1 = (from.top + from.bottom) / 2 - origin.top, y2 = (to.top + to.bottom) / 2 - origin.top;
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("d", `M${x1} ${y1} C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}`);
      path.setAttribute("class", match[1] < index ? "up" : match[1] > index ? "down" : "");
      path.dataset.id = item.dataset.id;
      lines.push(path);
    });
  }
  svg.replaceChildren(...lines);
}
