// How is a document shown? In full, with segments shaded by score and the selected one's attention.

import { getJson, postJson } from "./api.js";
import { element, formatScore, visuallyHidden } from "./dom.js";

const dialog = document.getElementById("reader"), contents = document.getElementById("contents");
const note = document.getElementById("reader-note"), attention = document.getElementById("attention");
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
const steps = document.getElementById("steps");
const SHARES = [1, 0.6, 0.4];  // the tint of the best segments, so that they stand out however close the scores are
const STOPS = 5;  // best segments that Next and Previous lead to
const BEHIND = 0.2;  // of the highest score; segments below are no stops
let controller = null, opener = null, stops = [], stop = 0;

// about: the service's settings, from /about; null until they are loaded.
export async function readDocument(hit, query, about) {
  controller?.abort();
  controller = new AbortController();
  const active = document.activeElement;  // not every browser focuses a clicked button
  opener = { element: active.matches(".title") ? active : null, docId: hit.doc_id };
  const { signal } = controller, path = `/documents/${encodeURIComponent(hit.doc_id)}`;
  document.getElementById("reader-title").textContent = hit.title || hit.doc_id;
  note.textContent = "Opening…";
  contents.replaceChildren();
  attention.hidden = steps.hidden = true;
  if (!dialog.open) dialog.showModal();
  try {
    const plain = await getJson(path, signal);
    contents.textContent = plain.contents;
    note.textContent = query && about?.model ? "Scoring…" : "";
    if (!query || !about?.model) return;
    const scored = await getJson(`${path}?query=${encodeURIComponent(query)}`, signal);
    const best = Math.max(0, ...scored.segments.map(segment => segment.score));
    showSegments(scored, about.attention && query, signal);
    showSteps(best);
    note.textContent = scored.segments.length
      ? `${scored.segments.length} segments; the highest score is ${formatScore(best)}.${about.attention ? " Select a segment to see the model’s attention." : ""}`
      : "This document has no text.";
  } catch (error) {
    if (error.name !== "AbortError") note.textContent = error.message;
  }
}

// query: the query if segments can be selected to show their attention; otherwise false.
function showSegments(scored, query, signal) {
  const nodes = [];
  let position = 0;
  const ranks = new Map(scored.segments.toSorted((a, b) => b.score - a.score).map((segment, rank) => [segment, rank]));
  const characters = Array.from(scored.contents);  // offsets count code points, not UTF-16 units
  const between = (start, end) => characters.slice(start, end).join("");
  for (const segment of scored.segments) {
    const start = Math.max(position, segment.start);
    if (start >= segment.end) continue;
    nodes.push(between(position, start));
    const select = event => showAttention(event.currentTarget, segment, query, signal);
    const button = query ? {
      role: "button", tabindex: "0", "aria-pressed": "false", onclick: select,
      onkeydown: event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); select(event); } },
    } : {};
    nodes.push(element("span", {
      class: "segment", share: SHARES[ranks.get(segment)] ?? 0.12 * segment.score, "data-rank": ranks.get(segment), "data-score": segment.score, title: `probability of relevance ${formatScore(segment.score)}`, ...button,
    }, between(start, segment.end), visuallyHidden(` (relevance ${formatScore(segment.score)}) `)));
    position = segment.end;
  }
  contents.replaceChildren(...nodes, between(position, characters.length));
}

// Next and Previous lead through the best segments, in document order; the best one is shown first.
function showSteps(best) {
  stops = [...contents.querySelectorAll(".segment")].filter(one => Number(one.dataset.rank) < STOPS && Number(one.dataset.score) >= BEHIND * best);
  steps.hidden = stops.length < 2;
  goTo(stops.findIndex(one => one.dataset.rank === "0"), "auto");
}

function goTo(number, behavior = reducedMotion.matches ? "auto" : "smooth") {
  if (!stops[number]) return;
  stop = number;
  stops[number].scrollIntoView({ block: "center", behavior });
  for (const one of stops) one.classList.toggle("current", one === stops[number]);
  steps.querySelector("output").textContent = `${number + 1} of ${stops.length}`;
}

for (const [name, change] of [["previous", -1], ["next", 1]])
  steps.querySelector(`.${name}`).addEventListener("click", () => goTo((stop + change + stops.length) % stops.length));

async function showAttention(selected, segment, query, signal) {
  for (const other of contents.querySelectorAll(".segment")) other.setAttribute("aria-pressed", other === selected);
  note.textContent = "Computing attention…";
  try {
    const data = await postJson("/attention", { query, text: segment.text }, signal);
    attention.hidden = false;
    attention.querySelector("blockquote").textContent = segment.text;
    window.drawAttention(data, attention);
    note.textContent = `Probability of relevance ${formatScore(data.score)}.`;
    attention.scrollIntoView({ block: "start", behavior: reducedMotion.matches ? "auto" : "smooth" });
  } catch (error) {
    if (error.name !== "AbortError") note.textContent = error.message;
  }
}

dialog.addEventListener("close", () => {
  controller?.abort();
  // The hits may have been redrawn meanwhile.
  const redrawn = `main section:not([hidden]) li[data-id="${CSS.escape(opener.docId)}"] .title`;
  (opener.element?.isConnected ? opener.element : document.querySelector(redrawn))?.focus();
});
