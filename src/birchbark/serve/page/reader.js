// How is a document shown? In full, with segments shaded by score and the selected one's attention.

import { getJson, postJson } from "./api.js";
import { element, formatScore, visuallyHidden } from "./dom.js";
import { source } from "./source.js";

const dialog = document.getElementById("reader"), contents = document.getElementById("contents");
const note = document.getElementById("reader-note"), sourceNote = document.getElementById("reader-source");
const advanced = document.getElementById("advanced"), attention = document.getElementById("attention");
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
const steps = document.getElementById("steps"), strip = document.getElementById("strip");
const SHARES = [1, 0.6, 0.4];  // the tint of the best segments, so that they stand out however close the scores are
const STOPS = 5;  // best segments that Next and Previous lead to
const BEHIND = 0.2;  // of the highest score; segments below are no stops
let controller = null, opener = null, stops = [], stop = 0, onClose = null, attend = null;

// The id of the document that is shown; null for none.
export const openDocument = () => dialog.open ? opener.docId : null;

export function closeDocument() {
  if (dialog.open) dialog.close();
}

// about: returns the service's settings, from /about; null until they are loaded. closed: called when the user closes the document.
export async function readDocument(hit, { query, literal }, about, closed) {
  controller?.abort();
  controller = new AbortController();
  const active = document.activeElement;  // not every browser focuses a clicked button
  opener = { element: active.matches(".title") ? active : null, docId: hit.doc_id };
  onClose = closed;
  const { signal } = controller, path = `/documents/${encodeURIComponent(hit.doc_id)}`;
  document.getElementById("reader-title").textContent = hit.title || hit.doc_id;
  note.textContent = "Opening…";
  contents.replaceChildren();
  sourceNote.replaceChildren();
  advanced.open = false;
  advanced.hidden = steps.hidden = true;
  if (!dialog.open) dialog.showModal();
  try {
    const plain = await getJson(path, signal);
    document.getElementById("reader-title").textContent = plain.title || hit.doc_id;
    contents.textContent = plain.contents;
    contents.classList.toggle("code", plain.fields.type === "code");
    const settings = about() ?? await getJson("/about", signal);
    sourceNote.replaceChildren(...source({ ...plain, source: plain.fields }, settings));
    note.textContent = query && settings.model ? "Scoring…" : "";
    if (!query || !settings.model) return;
    const scored = await getJson(`${path}?${new URLSearchParams({ query, literal })}`, signal);
    const best = Math.max(0, ...scored.segments.map(segment => segment.score));
    showSegments(scored, settings.attention && query, signal);
    showSteps(best);
    advanced.hidden = !settings.attention || !scored.segments.length;
    const of = scored.segment_count > scored.segments.length ? ` of ${scored.segment_count.toLocaleString("en")}` : "";
    const chosen = of || scored.unsplit_characters ? ", those with most of the query’s words" : "";
    note.textContent = scored.segments.length
      ? `${scored.segments.length}${of} ${scored.segments.length === 1 && !of ? "segment" : "segments"} read${chosen}; the highest score is ${formatScore(best)}.`
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
    nodes.push(element("span", {
      class: "segment", share: SHARES[ranks.get(segment)] ?? 0.12 * segment.score, "data-rank": ranks.get(segment), "data-score": segment.score, title: `probability of relevance ${formatScore(segment.score)}${segment.page === null ? "" : `, page ${segment.page}`}`,
    }, between(start, segment.end), visuallyHidden(` (relevance ${formatScore(segment.score)}) `)));
    position = segment.end;
  }
  contents.replaceChildren(...nodes, between(position, characters.length));
  attend = query ? selected => showAttention(selected, selected.textContent.replace(/ \(relevance [^)]*\) $/, ""), query, signal) : null;
}

// Next and Previous lead through the best segments, in document order; the best one is shown first.
function showSteps(best) {
  stops = [...contents.querySelectorAll(".segment")].filter(one => Number(one.dataset.rank) < STOPS && Number(one.dataset.score) >= BEHIND * best);
  steps.hidden = stops.length < 2;
  const top = contents.getBoundingClientRect().top, height = contents.scrollHeight || 1;
  strip.replaceChildren(...stops.map((one, number) => {
    const tick = element("i", { onclick: () => goTo(number) });
    tick.style.left = `${100 * (one.getBoundingClientRect().top - top) / height}%`;
    return tick;
  }));
  goTo(stops.findIndex(one => one.dataset.rank === "0"), "auto");
}

function goTo(number, behavior = reducedMotion.matches ? "auto" : "smooth") {
  if (!stops[number]) return;
  stop = number;
  stops[number].scrollIntoView({ block: "center", behavior });
  for (const one of stops) one.classList.toggle("current", one === stops[number]);
  [...strip.children].forEach((tick, index) => tick.classList.toggle("current", index === number));
  steps.querySelector("output").textContent = `Segment ${number + 1} of ${stops.length}`;
}

for (const [name, change] of [["previous", -1], ["next", 1]])
  steps.querySelector(`.${name}`).addEventListener("click", () => goTo((stop + change + stops.length) % stops.length));

// While the attention is shown, segments can be selected.
advanced.addEventListener("toggle", () => {
  for (const one of contents.querySelectorAll(".segment")) {
    if (advanced.open) { one.setAttribute("role", "button"); one.tabIndex = 0; }
    else for (const name of ["role", "tabindex", "aria-pressed"]) one.removeAttribute(name);
  }
  if (advanced.open) attend?.(stops[stop] ?? contents.querySelector(".segment"));
});
for (const kind of ["click", "keydown"]) contents.addEventListener(kind, event => {
  const selected = event.target.closest(".segment[role]");
  if (!selected || (kind === "keydown" && event.key !== "Enter" && event.key !== " ")) return;
  event.preventDefault();
  attend?.(selected);
});

async function showAttention(selected, text, query, signal) {
  for (const other of contents.querySelectorAll(".segment")) other.setAttribute("aria-pressed", other === selected);
  note.textContent = "Computing attention…";
  try {
    const data = await postJson("/attention", { query, text }, signal);
    attention.querySelector("blockquote").textContent = text;
    window.drawAttention(data, attention);
    note.textContent = `Probability of relevance ${formatScore(data.score)}.`;
    advanced.scrollIntoView({ block: "start", behavior: reducedMotion.matches ? "auto" : "smooth" });
  } catch (error) {
    if (error.name !== "AbortError") note.textContent = error.message;
  }
}

dialog.addEventListener("close", () => {
  controller?.abort();
  // The hits may have been redrawn meanwhile.
  const redrawn = `main section:not([hidden]) li[data-id="${CSS.escape(opener.docId)}"] .title`;
  (opener.element?.isConnected ? opener.element : document.querySelector(redrawn))?.focus();
  onClose?.();
});
