// How is a document read? Whole, each sentence tinted by its score; one of them with its attention.

import { asked, got } from "./ask.js";
import { figure, made, unseen } from "./made.js";

const dialog = document.getElementById("reader"), contents = document.getElementById("contents");
const note = document.getElementById("reader-note"), attention = document.getElementById("attention");
const calm = matchMedia("(prefers-reduced-motion: reduce)");
let reading = null, opener = null;

// about: what the service is like; null while that is not known.
export async function readDocument(hit, query, about) {
  reading?.abort();
  reading = new AbortController();
  const active = document.activeElement;  // not every browser focuses what is clicked
  opener = { element: active.matches(".title, #beside button") ? active : null, doc: hit.doc_id };
  const { signal } = reading, path = `/documents/${encodeURIComponent(hit.doc_id)}`;
  document.getElementById("reader-title").textContent = hit.title || hit.doc_id;
  note.textContent = "Opening…";
  contents.replaceChildren();
  attention.hidden = true;
  if (!dialog.open) dialog.showModal();
  try {
    const plain = await got(path, signal);
    contents.textContent = plain.contents;
    note.textContent = query && about?.model ? "Reading…" : "";
    if (!query || !about?.model) return;
    const read = await got(`${path}?query=${encodeURIComponent(query)}`, signal);
    tint(read, about.attention && query, signal);
    const best = Math.max(0, ...read.segments.map(one => one.score));
    note.textContent = read.segments.length
      ? `${read.segments.length} pieces; the best has ${figure(best)}.${about.attention ? " Choose one to see what the model looked at." : ""}`
      : "There is no text to read.";
  } catch (fault) {
    if (fault.name !== "AbortError") note.textContent = fault.message;
  }
}

// query: where a piece can be chosen, to see what the model looked at for it; else false.
function tint(read, query, signal) {
  const pieces = [];
  let at = 0;
  const characters = Array.from(read.contents);  // offsets count characters, not JavaScript's units
  const between = (start, end) => characters.slice(start, end).join("");
  for (const one of read.segments) {
    const start = Math.max(at, one.start);
    if (start >= one.end) continue;
    pieces.push(between(at, start));
    const press = event => look(event.currentTarget, one, query, signal);
    const chosen = query ? {
      role: "button", tabindex: "0", "aria-pressed": "false", onclick: press,
      onkeydown: event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); press(event); } },
    } : {};
    pieces.push(made("span", {
      class: "segment", share: one.score, title: `probability of relevance ${figure(one.score)}`, ...chosen,
    }, between(start, one.end), unseen(` (relevance ${figure(one.score)}) `)));
    at = one.end;
  }
  contents.replaceChildren(...pieces, between(at, characters.length));
}

async function look(segment, one, query, signal) {
  for (const other of contents.querySelectorAll(".segment")) other.setAttribute("aria-pressed", other === segment);
  note.textContent = "Looking…";
  try {
    const data = await asked("/attention", { query, text: one.text }, signal);
    attention.hidden = false;
    attention.querySelector("blockquote").textContent = one.text;
    window.drawAttention(data, attention);
    note.textContent = `Probability of relevance ${figure(data.score)}.`;
    attention.scrollIntoView({ block: "start", behavior: calm.matches ? "auto" : "smooth" });
  } catch (fault) {
    if (fault.name !== "AbortError") note.textContent = fault.message;
  }
}

dialog.addEventListener("close", () => {
  reading?.abort();  // hits may have been drawn anew meanwhile
  const there = `main section:not([hidden]) li[data-id="${CSS.escape(opener.doc)}"] .title`;
  (opener.element?.isConnected ? opener.element : document.querySelector(there))?.focus();
});
