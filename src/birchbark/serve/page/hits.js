// How are hits drawn, and how do they move when the ranking changes?

import { element, formatScore, title, visuallyHidden } from "./dom.js";

const NOT_IN_FIRST_STAGE = "not among the first stage’s best";
const CONTEXT = 80;  // characters on each side of a segment
const MAX_SEGMENTS = 3;  // shown per hit
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
  item.querySelector(".evidence").replaceChildren(...(hit.segments.length ? evidence(hit.segments) : [hit.lead]));
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
  if (!hit.scored) return ["not scored: in first-stage order"];
  const sum = `${formatScore(hit.score)}${parts.length > 1 ? " = " + parts.map(([, name, value]) => `${name} ${formatScore(value)}`).join(" + ") : ""}`;
  const bar = element("span", { class: "bar", "aria-hidden": "true" },
    ...parts.map(([kind, , value]) => element("i", { class: kind, width: `${100 * value / maxScore}%` })));
  return [bar, element("span", {}, sum)];
}

// The best segments in document order, with the text between them if it is short.
function evidence(all) {
  const segments = all.slice(0, MAX_SEGMENTS), more = all.length - segments.length;
  const nodes = [], context = text => element("span", { class: "context" }, text);
  let end = null, after = "";
  for (const segment of segments.toSorted((a, b) => a.start - b.start)) {
    const before = Array.from(segment.before), gap = end === null ? Infinity : segment.start - end;
    if (gap <= before.length) nodes.push(context(before.slice(before.length - Math.max(0, gap)).join("")));
    else nodes.push(context(((end === null ? "" : shortenEnd(after)) + shortenStart(segment.before)).replace("… … ", "… ")));
    nodes.push(element("mark", { share: segment.score, title: `probability of relevance ${formatScore(segment.score)}, weight ${formatScore(segment.weight)}` },
      segment.text, element("small", { "aria-hidden": "true" }, ` ${formatScore(segment.score)} × ${formatScore(segment.weight)}`),
      visuallyHidden(` (relevance ${formatScore(segment.score)}) `)));
    [end, after] = [segment.end, segment.after];
  }
  const rest = more ? [element("small", {}, `and ${more} more segment${more > 1 ? "s" : ""}`)] : [];
  return [...nodes, context(shortenEnd(after)), ...rest];
}

// Context starts and ends between words.
function shortenStart(text) {
  if (text.length <= CONTEXT) return text;
  const tail = text.slice(-CONTEXT);
  return "… " + tail.slice(tail.indexOf(" ") + 1);
}

function shortenEnd(text) {
  if (text.length <= CONTEXT) return text + " ";
  const head = text.slice(0, CONTEXT);
  return head.slice(0, head.lastIndexOf(" ")) + " … ";
}
