// How are hits drawn, and how do they move to new places?

import { figure, made, named, unseen } from "./made.js";

const FAR = "not among the first stage’s best";
const CONTEXT = 80;  // characters
const MOST = 3;  // pieces of evidence that are shown of a hit
const calm = matchMedia("(prefers-reduced-motion: reduce)");

let pressed = false, held = null;  // nothing is moved from under a finger
addEventListener("pointerdown", event => { pressed = event.button === 0 && Boolean(event.target.closest?.("#hits")); });
for (const kind of ["pointerup", "pointercancel", "contextmenu", "dragend", "blur"]) addEventListener(kind, () => setTimeout(() => {  // after the click
  pressed = false;
  const draw = held;
  held = null;
  draw?.();
}));

// first: doc_id → place in the first stage's ranking. open: called with a hit.
export function showHits(list, answer, first, open) {
  if (pressed) held = () => drawHits(list, answer, first, open);
  else drawHits(list, answer, first, open);
}

export function forgetHits(list) {
  [pressed, held] = [false, null];
  list.replaceChildren();
}

// What stands in the list already is changed where it is, so that focus, clicks and selections last.
function drawHits(list, answer, first, open) {
  const focused = document.activeElement, old = new Map([...list.children].map(item => [item.dataset.id, item]));
  const before = new Map([...old].map(([id, item]) => [id, item.getBoundingClientRect().top]));
  const most = Math.max(...answer.hits.map(hit => hit.score), 1e-9);
  const items = answer.hits.map((hit, place) => filled(old.get(hit.doc_id) ?? blank(hit, open), hit, place + 1, first, most));
  let at = list.firstElementChild;
  for (const one of items) {
    if (one === at) at = at.nextElementSibling;
    else list.insertBefore(one, at);
  }
  for (const one of old.values()) if (!items.includes(one)) one.remove();
  if (focused !== document.activeElement && list.contains(focused)) focused.focus({ preventScroll: true });
  if (calm.matches) return;
  for (const one of items) {
    const from = before.get(one.dataset.id);
    if (from === undefined) {
      if (old.size) one.animate({ opacity: [0, 1] }, { duration: 250 });
      continue;
    }
    const by = from - one.getBoundingClientRect().top;
    if (Math.abs(by) > 1)
      one.animate({ transform: [`translateY(${by}px)`, "none"] }, { duration: 350, easing: "ease-out" });
  }
}

function blank(hit, open) {
  const one = made("li", { "data-id": hit.doc_id }, made("div", { class: "rank" }), made("div", {},
    made("button", { type: "button", class: "title", onclick: () => open(one.hit) }),
    made("div", { class: "parts" }), made("p", { class: "evidence" })));
  return one;
}

function filled(one, hit, place, first, most) {
  const shown = JSON.stringify([hit, place, first.get(hit.doc_id), most]);
  if (one.shown === shown) return one;
  [one.shown, one.hit, one.className] = [shown, hit, hit.settled ? "" : "unread"];
  const title = one.querySelector(".title"), name = named(hit);
  if (title.textContent !== name) title.textContent = name;
  one.querySelector(".rank").replaceChildren(String(place), moved(first.get(hit.doc_id), place));
  one.querySelector(".parts").replaceChildren(...parts(hit, most));
  one.querySelector(".evidence").replaceChildren(...(hit.segments.length ? evidence(hit.segments) : [hit.lead]));
  return one;
}

function moved(was, place) {
  if (was === undefined) return made("span", { class: "moved up", title: FAR }, made("span", { "aria-hidden": "true" }, "new"), unseen(FAR));
  const by = was - place;
  if (!by) return "";
  const [sign, way] = by > 0 ? ["▲", "up"] : ["▼", "down"];
  const label = `${way} ${Math.abs(by)} from the first stage's ranking`;
  return made("span", { class: `moved ${way}`, title: label }, made("span", { "aria-hidden": "true" }, `${sign} ${Math.abs(by)}`), unseen(label));
}

function parts(hit, most) {
  const named = [["first", "first stage", hit.first_stage], ["embedding", "embedding", hit.embedding], ["evidence-part", "evidence", hit.evidence]]
    .filter(([, , value]) => value > 0);
  if (!hit.settled) return ["not read: where the first stage has it"];
  const told = `${figure(hit.score)}${named.length > 1 ? " = " + named.map(([, name, value]) => `${name} ${figure(value)}`).join(" + ") : ""}`;
  const bar = made("span", { class: "bar", "aria-hidden": "true" },
    ...named.map(([kind, , value]) => made("i", { class: kind, width: `${100 * value / most}%` })));
  return [bar, made("span", {}, told)];
}

// The best segments in the order of the text, with what stands between them where that is little.
function evidence(every) {
  const segments = every.slice(0, MOST), more = every.length - segments.length;
  const pieces = [], around = text => made("span", { class: "around" }, text);
  let end = null, after = "";
  for (const one of segments.toSorted((a, b) => a.start - b.start)) {
    const before = Array.from(one.before), gap = end === null ? Infinity : one.start - end;
    if (gap <= before.length) pieces.push(around(before.slice(before.length - Math.max(0, gap)).join("")));
    else pieces.push(around(((end === null ? "" : ended(after)) + begun(one.before)).replace("… … ", "… ")));
    pieces.push(made("mark", { share: one.score, title: `probability of relevance ${figure(one.score)}, weight ${figure(one.weight)}` },
      one.text, made("small", { "aria-hidden": "true" }, ` ${figure(one.score)} × ${figure(one.weight)}`),
      unseen(` (relevance ${figure(one.score)}) `)));
    [end, after] = [one.end, one.after];
  }
  const rest = more ? [made("small", {}, `and ${more} more that count${more > 1 ? "" : "s"}`)] : [];
  return [...pieces, around(ended(after)), ...rest];
}

// Context begins and ends between words.
function begun(text) {
  if (text.length <= CONTEXT) return text;
  const part = text.slice(-CONTEXT);
  return "… " + part.slice(part.indexOf(" ") + 1);
}

function ended(text) {
  if (text.length <= CONTEXT) return text + " ";
  const part = text.slice(0, CONTEXT);
  return part.slice(0, part.lastIndexOf(" ")) + " … ";
}
