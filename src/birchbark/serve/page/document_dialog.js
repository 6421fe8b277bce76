// How is a document shown? In full, with segments shaded by score and the selected one's attention.

import { getJson, postJson } from "./api.js";
import { formattedView, plainView } from "./document_views.js";
import { byId, element, formatScore, title, visuallyHidden } from "./dom.js";
import { countCharacters, findShown, shownCharacters, wrap } from "./marks.js";
import { showSource } from "./source.js";

const dialog = byId("reader"), contents = byId("contents");
const note = byId("reader-note"), again = byId("reader-again"), sourceNote = byId("reader-source");
const advanced = byId("advanced"), attention = byId("attention");
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
const steps = byId("steps"), strip = byId("strip"), choice = byId("view-choice");
const SHARES = [1, 0.6, 0.4];  // the tint of the best segments, so that they stand out however close the scores are
const STOPS = 5;  // best segments that Next and Previous lead to
const BEHIND = 0.2;  // of the highest score; segments below are no stops
const RENDERED = ["markdown", "html"];  // types that the service renders
const FORMATTED = "formatted", PLAIN = "plain";
let controller = null, selection = null, opener = null, shown = null, stops = [], stop = 0, onClose = null, attend = null, openAgain = null;

// The id of the document that is shown; null for none.
export const openDocument = () => dialog.open ? opener.docId : null;

export function closeDocument() {
  if (dialog.open) dialog.close();
}

// about: returns the service's settings, from /about; null until they are loaded. addressOf: the address at which the document with
// an id is shown. closed: called when the user closes the document.
export async function readDocument(hit, { query, literal }, about, addressOf, closed) {
  abort();
  controller = new AbortController();
  openAgain = () => readDocument(hit, { query, literal }, about, addressOf, closed);
  const active = document.activeElement;  // not every browser focuses a clicked button
  opener = { element: dialog.open ? opener.element : active.matches(".title") ? active : null, docId: hit.doc_id };  // open: by a link
  onClose = closed;
  const { signal } = controller, path = `/documents/${encodeURIComponent(hit.doc_id)}`;
  byId("reader-title").textContent = title(hit);
  note.textContent = "Opening…";
  contents.replaceChildren();
  sourceNote.replaceChildren();
  [stops, shown] = [[], null];
  advanced.open = false;
  advanced.hidden = steps.hidden = choice.hidden = again.hidden = true;
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  try {
    const plain = await getJson(path, signal), settings = about() ?? await getJson("/about", signal);
    const opened = { ...plain, source: plain.fields, lead: plain.contents };  // as a hit has them
    byId("reader-title").textContent = title(opened);
    showSource(sourceNote, opened, settings);
    const scoring = query && settings.model ? getJson(`${path}?${new URLSearchParams({ query, literal })}`, signal) : null;
    scoring?.catch(() => {});  // it is awaited below
    const rendered = RENDERED.includes(plain.fields.type) ? await render(hit.doc_id, signal) : null;
    shown = { plain: plainView(plain), formatted: formattedView(plain, rendered, settings, addressOf), document: plain, reason: rendered?.reason };
    show(shown.formatted ? FORMATTED : PLAIN);
    if (!scoring) return;
    tell("Scoring…");
    const scored = await scoring.then(one => sameContents(one, plain)).catch(error => asSearched(error, hit, plain)), best = scored.segments.toSorted((a, b) => b.score - a.score);
    shown = { ...shown, ranked: best, note: scored.failure ?? summary(scored, best[0]?.score ?? 0) };
    again.hidden = !scored.failure;
    attend = settings.attention ? segment => showAttention(segment, scored.read_query ?? query) : null;
    if (best.length) showSource(sourceNote, { ...opened, segments: best }, settings);
    if (!mark() && shown.view === FORMATTED) {
      shown.reason = "the evidence could not be found in the formatted document";
      show(PLAIN);
    }
    tell(shown.note);
  } catch (error) {
    if (error.name === "AbortError") return;
    note.textContent = error.message;
    again.hidden = false;
  }
}
again.addEventListener("click", () => openAgain());

function abort() {
  controller?.abort();
  selection?.abort();
}

function sameContents(scored, { contents: text }) {
  if (scored.contents !== text) throw new Error("the document has changed meanwhile");
  return scored;
}

// What is marked if a document cannot be scored: what the search has read of it, if that is still in its contents.
function asSearched(error, { segments = [], snippet }, { contents: text }) {
  if (error.name === "AbortError") throw error;
  const characters = Array.from(text), found = segments.length || !snippet ? segments : [{ ...snippet, score: null }];
  const known = found.filter(one => one.text.endsWith(characters.slice(one.start, one.end).join("")));
  return { segments: known, failure: `${known.length ? "Only what the search found is marked" : "Nothing is marked"}: ${error.message}.` };
}

async function render(docId, signal) {
  try {
    return await getJson(`/rendered/${encodeURIComponent(docId)}`, signal);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return { reason: error.message };
  }
}

function summary(scored, best) {
  const { segments, segment_count: count, unsplit_characters: unsplit } = scored, of = count > segments.length ? ` of ${count.toLocaleString("en")}` : "";
  const chosen = of || unsplit ? ", those with most of the query’s words" : "";
  return segments.length
    ? `${segments.length}${of} ${segments.length === 1 && !of ? "passage" : "passages"} read${chosen}; the highest score is ${formatScore(best)}.`
    : "This document has no text.";
}

function tell(text) {
  const plain = shown.view === PLAIN && shown.reason ? `Shown as plain text: ${shown.reason}.` : "";
  note.textContent = [text, plain].filter(Boolean).join(" ");
}

// view: FORMATTED or PLAIN. If the document has been scored, its segments are marked.
function show(view) {
  shown.view = view;
  const { kind, nodes } = shown[view];
  contents.className = shown.document.fields.type === "code" ? "plain code" : kind;
  contents.replaceChildren(...nodes.map(node => node.cloneNode(true)));
  choice.hidden = !shown.formatted;
  for (const button of choice.children) button.setAttribute("aria-pressed", button.value === view);
  tell(shown.note ?? "");
  if (shown.ranked) mark();
}
for (const button of choice.children) button.addEventListener("click", () => show(button.value));

// Marks the segments, their best sentences and the query's terms; returns whether all segments that are stops were found.
function mark() {
  const { document: { title, contents: text }, ranked, view } = shown, { runs } = shown[view], whole = countCharacters(text);
  const start = view === FORMATTED && title ? countCharacters(title).bare.length : 0;  // the title stands above, and is not marked
  // Returns the elements around each part of the contents; none for one that was not found.
  const wrapAll = (parts, make) => {
    const characters = shownCharacters(contents), ranges = [];
    const found = parts.map(([from, to], index) => [findShown([Math.max(start, whole.before[from]), whole.before[to]], runs, whole.bare, characters.bare), index]);
    for (const [[from, to], index] of found.filter(([range]) => range).sort(([a], [b]) => a[0] - b[0])) {
      const free = Math.max(from, ranges.at(-1)?.[1] ?? 0);  // segments of some kinds overlap
      if (free < to) ranges.push([free, to, index]);
    }
    const elements = wrap(characters, ranges, number => make(ranges[number][2]));
    const numbers = new Map(ranges.map(([, , index], number) => [index, number]));
    return parts.map((_, index) => elements[numbers.get(index)] ?? []);
  };
  // Parts of a segment's text, in the contents; a title may precede its own text.
  const within = ({ start, end, text }, parts) => {
    const size = Array.from(text).length, own = size - (end - start);
    return own < 0 ? [] : parts.filter(([from]) => from >= own).map(part => part.map(offset => end - size + offset));
  };
  const found = wrapAll(ranked.map(({ start, end }) => [start, end]), rank => segmentElement(ranked[rank], rank));
  wrapAll(ranked.flatMap(segment => within(segment, segment.sentence ? [segment.sentence] : [])), () => element("span", { class: "sentence" }));
  wrapAll(ranked.flatMap(segment => within(segment, segment.marks)), () => element("strong", { class: "term" }));
  found.forEach((parts, rank) => ranked[rank].score !== null && parts.at(-1)?.append(visuallyHidden(` (relevance ${formatScore(ranked[rank].score)}) `)));
  const stopRanks = [...ranked.keys()].filter(rank => rank < STOPS && ranked[rank].score >= BEHIND * ranked[0].score);
  showSteps(stopRanks.map(rank => found[rank]).filter(parts => parts.length));
  advanced.hidden = !attend || !found.some(parts => parts.length);
  makeSelectable();
  return stopRanks.every(rank => found[rank].length || whole.before[ranked[rank].end] <= start);
}

function segmentElement({ score, page }, rank) {
  const title = [score !== null && `probability of relevance ${formatScore(score)}`, page !== null && `page ${page}`].filter(Boolean).join(", ");
  return element("span", { class: "segment", share: SHARES[rank] ?? 0.12 * score, "data-rank": rank, "data-score": score ?? undefined, title });
}

// Next and Previous lead through the best segments, in document order; the best one is shown first. best: the elements of each, best first.
function showSteps(best) {
  const [first] = best;
  stops = best.toSorted(([a], [b]) => a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1);
  steps.hidden = stops.length < 2;
  const top = contents.getBoundingClientRect().top, height = contents.scrollHeight || 1;
  strip.replaceChildren(...stops.map(([one], number) => {
    const tick = element("i", { onclick: () => goTo(number) });
    tick.style.left = `${100 * (one.getBoundingClientRect().top - top) / height}%`;
    return tick;
  }));
  goTo(stops.indexOf(first), "auto");
}

function goTo(number, behavior = reducedMotion.matches ? "auto" : "smooth") {
  if (!stops[number]) return;
  stop = number;
  stops[number][0].scrollIntoView({ block: "center", behavior });
  for (const parts of stops) for (const one of parts) one.classList.toggle("current", parts === stops[number]);
  [...strip.children].forEach((tick, index) => tick.classList.toggle("current", index === number));
  steps.querySelector("output").textContent = `Passage ${number + 1} of ${stops.length}`;
}

for (const [name, change] of [["previous", -1], ["next", 1]])
  steps.querySelector(`.${name}`).addEventListener("click", () => goTo((stop + change + stops.length) % stops.length));

// While the attention is shown, segments can be selected.
advanced.addEventListener("toggle", () => {
  makeSelectable();
  const first = stops[stop]?.[0] ?? contents.querySelector(".segment");
  if (advanced.open && first) select(first);
});
function makeSelectable() {
  for (const one of contents.querySelectorAll(".segment")) {
    if (advanced.open) { one.setAttribute("role", "button"); one.tabIndex = 0; }
    else for (const name of ["role", "tabindex", "aria-pressed"]) one.removeAttribute(name);
  }
}
function select(one) {
  for (const other of contents.querySelectorAll(".segment")) other.setAttribute("aria-pressed", other.dataset.rank === one.dataset.rank);
  attend?.(shown.ranked[one.dataset.rank]);
}
for (const kind of ["click", "keydown"]) contents.addEventListener(kind, event => {
  const selected = event.target.closest(".segment[role]");
  if (!selected || event.target.closest("a") || (kind === "keydown" && event.key !== "Enter" && event.key !== " ")) return;
  event.preventDefault();
  select(selected);
});

// A link to a place in the document itself; the page's own address stays.
contents.addEventListener("click", event => {
  const place = event.target.closest("a[href^='#text-']")?.getAttribute("href").slice(1);
  if (!place) return;
  event.preventDefault();
  contents.querySelector(`#${CSS.escape(place)}, a[name="${CSS.escape(place.slice(5))}"]`)?.scrollIntoView({ block: "start", behavior: reducedMotion.matches ? "auto" : "smooth" });
});

// The attention of the segment that is selected last.
async function showAttention({ text }, query) {
  selection?.abort();
  selection = new AbortController();
  note.textContent = "Computing attention…";
  try {
    const data = await postJson("/attention", { query, text }, selection.signal);
    attention.querySelector("blockquote").textContent = text;
    window.drawAttention(data, attention);
    note.textContent = `Probability of relevance ${formatScore(data.score)}.`;
    advanced.scrollIntoView({ block: "start", behavior: reducedMotion.matches ? "auto" : "smooth" });
  } catch (error) {
    if (error.name !== "AbortError") note.textContent = error.message;
  }
}

dialog.addEventListener("close", () => {
  abort();
  // The hits may have been redrawn meanwhile.
  const redrawn = `main section:not([hidden]) li[data-id="${CSS.escape(opener.docId)}"] .title`;
  (opener.element?.isConnected ? opener.element : document.querySelector(redrawn))?.focus();
  onClose?.();
});
