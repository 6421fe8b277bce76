// How do rankings of the same candidates differ? Lists side by side, lines between their places.

import { made, named, unseen } from "./made.js";

const SVG = "http://www.w3.org/2000/svg";

// columns: [name, answer] of each ranking. open: called with a hit.
export function showBeside(section, columns, open) {
  const lists = section.querySelector(".lists");
  const same = (id, on) => {
    for (const one of section.querySelectorAll("li, path")) one.classList.toggle("same", on && one.dataset.id === id);
  };
  lists.replaceChildren(...columns.map(([name, answer]) => made("div", {},
    made("h2", {}, name),
    made("ol", {}, ...answer.hits.map((hit, place) => made("li", {
      "data-id": hit.doc_id,
      onmouseenter: () => same(hit.doc_id, true), onmouseleave: () => same(hit.doc_id, false),
      onfocusin: () => same(hit.doc_id, true), onfocusout: () => same(hit.doc_id, false),
    }, made("span", {}, made("span", { "aria-hidden": "true" }, String(place + 1)), unseen(places(hit, columns))),
    made("button", { type: "button", class: "title", onclick: () => open(hit) }, named(hit))))))));
  drawLines(section);
}

export function clearBeside(section) {
  section.querySelector(".lists").replaceChildren();
  section.querySelector("svg").replaceChildren();
}

function places(hit, columns) {
  return columns.map(([name, answer]) => {
    const place = answer.hits.findIndex(one => one.doc_id === hit.doc_id);
    return `${name}: ${place < 0 ? "not among these" : place + 1}`;
  }).join(", ");
}

export function drawLines(section) {
  const frame = section.querySelector(".lists"), svg = section.querySelector("svg");
  const zero = frame.getBoundingClientRect();
  svg.setAttribute("width", frame.scrollWidth);
  svg.setAttribute("height", frame.scrollHeight);
  const columns = [...frame.children].map(column => [...column.querySelectorAll("li")]);
  const lines = [];
  for (let n = 0; n + 1 < columns.length; n++) {
    const next = new Map(columns[n + 1].map((item, place) => [item.dataset.id, [item, place]]));
    columns[n].forEach((item, place) => {
      const found = next.get(item.dataset.id);
      if (!found) return;
      const from = item.getBoundingClientRect(), to = found[0].getBoundingClientRect();
      const x1 = from.right - zero.left, x2 = to.left - zero.left;
      const y1 = (from.top + from.bottom) / 2 - zero.top, y2 = (to.top + to.bottom) / 2 - zero.top;
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("d", `M${x1} ${y1} C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}`);
      path.setAttribute("class", found[1] < place ? "up" : found[1] > place ? "down" : "");
      path.dataset.id = item.dataset.id;
      lines.push(path);
    });
  }
  svg.replaceChildren(...lines);
}
