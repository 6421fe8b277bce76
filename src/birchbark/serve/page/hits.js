// How are hits drawn, and how do they move when the ranking changes?

import { element, formatScore, title, visuallyHidden } from "./dom.js";
import { evidence, snippet } from "./passages.js";

const NOT_IN_FIRST_STAGE = "not among the first stage’s best";
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

let pressed = false, pendingDraw = null;  // hits are not moved while one is being pressed
addEventListener("pointerdown", event => { pressed = event.button === 0 && Boolean(event.target.closest?.("#hits")); });
for (const kind of ["pointerup", "pointercancel", "contextmenu", "dragend", "blur"]) addEventListener(kind, () => setTimeout(() => {  // after the click
  pressed = false;
  const draw = pendingDraw;
  pendingDraw = null;
  draw?.();
}));

// firstStageRanks: doc_id → rank. open: called with the hit that the user selects.
export function showHits(list, answer, firstStageRanks, open) {
  if (pressed) pendingDraw = () => drawHits(list, answer, firstStageRanks, open);
  else drawHits(list, answer, firstStageRanks, open);
}

export function clearHits(list) {
  [pressed, pendingDraw] = [false, null];
  list.replaceChildren();
}

// Items of documents already in the list are updated in place, so that focus and selections persist.
function drawHits(list, answer, firstStageRanks, open) {
  const focused = document.activeElement, existing = new Map([...list.children].map(item => [item.dataset.id, item]));
  const oldTops = new Map([...existing].map(([id, item]) => [id, item.getBoundingClientRect().top]));
  const maxScore = Math.max(...answer.hits.map(hit => hit.score), 1e-9);
  const items = answer.hits.map((hit, index) => update(existing.get(hit.doc_id) ?? createItem(hit, open), hit, index + 1, firstStageRanks, maxScore));
  let next = list.firstElementChild;
  for (const item of items) {
    if (item === next) next = next.nextElementSibling;
    else list.insertBefore(item, next);
  }
  for (const item of existing.values()) if (!items.includes(item)) item.remove();
  if (focused !== document.activeElement && list.contains(focused)) focused.focus({ preventScroll: true });
  if (reducedMotion.matches) return;
  for (const item of items) {
    const oldTop = oldTops.get(item.dataset.id);
    if (oldTop === undefined) {
      if (existing.size) item.animate({ opacity: [0, 1] }, { duration: 250 });
      continue;
    }
    const distance = oldTop - item.getBoundingClientRect().top;
    if (Math.abs(distance) > 1)
      item.animate({ transform: [`translateY(${distance}px)`, "none"] }, { duration: 350, easing: "ease-out" });
  }
}

function createItem(hit, open) {
  const item = element("li", { "data-id": hit.doc_id }, element("div", { class: "rank" }), element("div", {},
    element("button", { type: "button", class: "title", onclick: () => open(item.hit) }),
    element("div", { class: "parts" }), element("p", { class: "evidence" })));
  return item;
}

function update(item, hit, rank, firstStageRanks, maxScore) {
  const content = JSON.stringify([hit, rank, firstStageRanks.get(hit.doc_id), maxScore]);
  if (item.content === content) return item;
  [item.content, item.hit, item.className] = [content, hit, hit.scored ? "" : "unscored"];
  const heading = item.querySelector(".title"), text = title(hit);
  if (heading.textContent !== text) heading.textContent = text;
  item.querySelector(".rank").replaceChildren(String(rank), rankChange(firstStageRanks.get(hit.doc_id), rank));
  item.querySelector(".parts").replaceChildren(...scoreParts(hit, maxScore));
  item.querySelector(".evidence").replaceChildren(...(hit.segments.length ? evidence(hit.segments) : snippet(hit.snippet)));
  return item;
}

function rankChange(oldRank, rank) {
  if (oldRank === undefined) return element("span", { class: "moved up", title: NOT_IN_FIRST_STAGE }, element("span", { "aria-hidden": "true" }, "new"), visuallyHidden(NOT_IN_FIRST_STAGE));
  const change = oldRank - rank;
  if (!change) return "";
  const [sign, direction] = change > 0 ? ["▲", "up"] : ["▼", "down"];
  const label = `${direction} ${Math.abs(change)} from the first stage's ranking`;
  return element("span", { class: `moved ${direction}`, title: label }, element("span", { "aria-hidden": "true" }, `${sign} ${Math.abs(change)}`), visuallyHidden(label));
}

function scoreParts(hit, maxScore) {
  const parts = [["first-stage", "first stage", hit.first_stage], ["embedding", "embedding", hit.embedding], ["evidence-part", "evidence", hit.evidence]]
    .filter(([, , value]) => value > 0);
  const sum = `${formatScore(hit.score)}${parts.length > 1 ? " = " + parts.map(([, name, value]) => `${name} ${formatScore(value)}`).join(" + ") : ""}`;
  const bar = element("span", { class: "bar", "aria-hidden": "true" },
    ...parts.map(([kind, , value]) => element("i", { class: kind, width: `${100 * value / maxScore}%` })));
  return [bar, element("span", {}, hit.scored ? sum : `${sum}; not read`), ...(hit.title || hit.lead ? [element("span", { class: "id" }, hit.doc_id)] : [])];
}
