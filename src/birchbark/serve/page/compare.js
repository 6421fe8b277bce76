// How are several rankings shown side by side? As lists, with lines that connect equal documents.

import { element, title, visuallyHidden } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";

// rankings: [name, answer] pairs. open: called with the hit that the user selects.
export function showRankings(section, rankings, open) {
  const lists = section.querySelector(".lists");
  const highlight = (id, on) => {
    for (const node of section.querySelectorAll("li, path")) node.classList.toggle("highlighted", on && node.dataset.id === id);
  };
  lists.replaceChildren(...rankings.map(([name, answer]) => element("div", {},
    element("h2", {}, name),
    element("ol", {}, ...answer.hits.map((hit, index) => element("li", {
      "data-id": hit.doc_id,
      onmouseenter: () => highlight(hit.doc_id, true), onmouseleave: () => highlight(hit.doc_id, false),
      onfocusin: () => highlight(hit.doc_id, true), onfocusout: () => highlight(hit.doc_id, false),
    }, element("span", {}, element("span", { "aria-hidden": "true" }, String(index + 1)), visuallyHidden(describeRanks(hit, rankings))),
    element("button", { type: "button", class: "title", onclick: () => open(hit) }, title(hit))))))));
  drawLines(section);
}

export function clearRankings(section) {
  section.querySelector(".lists").replaceChildren();
  section.querySelector("svg").replaceChildren();
}

function describeRanks(hit, rankings) {
  return rankings.map(([name, answer]) => {
    const index = answer.hits.findIndex(other => other.doc_id === hit.doc_id);
    return `${name}: ${index < 0 ? "not among these" : index + 1}`;
  }).join(", ");
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
      if (!match) return;
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
