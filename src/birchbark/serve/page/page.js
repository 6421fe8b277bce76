// How does the page react to queries, filters, changes of view, and the keyboard?

import { getJson, saveResults, searchStream } from "./api.js";
import { showChips } from "./chips.js";
import { clearRankings, drawLines, showChanges, showColumns, showRanking } from "./compare.js";
import { byId, element } from "./dom.js";
import { loadFilters } from "./filters.js";
import { showHits } from "./hits.js";
import { closeDocument, openDocument, readDocument } from "./document_dialog.js";
import { forgetDrawings } from "./ranked_list.js";
import { firstStage, noResults, notes, notice, rankers, reading, summary } from "./status.js";
import { chosenWeights, showWeights } from "./weights.js";
import { welcome } from "./welcome.js";

const TOP = 10, MOST = 100;  // results at first, and at most
const queryField = byId("query"), status = byId("status"), announcement = byId("announcement"), progress = byId("progress"), error = byId("error"), stop = byId("stop"), goOn = byId("go-on"), details = byId("details"), more = byId("more");
const state = { query: "", literal: false, filters: {}, sort: "", view: "results", about: null, controller: null, firstStageRanks: new Map(), last: null, ms: 0, top: TOP };
const WAITING_DELAY = 400;  // milliseconds until the page shows that it is waiting
const COMPARE_BUDGET = 10_000;  // milliseconds per ranking in the comparison
const PAUSE = 1000;  // milliseconds until the page asks again
const TRIES = 5;  // how often it asks again while the service is busy
const FILTER = /^([^=]+)=(.+)$/s;  // in the address: a field and its filter; others are left out
const IDLE_ROUNDS = 3;  // how often it goes on reading when nothing more was read

const request = by => ({ query: state.query, ...(state.literal ? { literal: true } : {}), by, top: state.top, filters: state.filters, ...(state.sort && state.view === "results" ? { sort: state.sort } : {}), ...(by === "bert" ? chosenWeights() : {}) });
const open = hit => { state.opened = hit; writeUrl({ doc: hit.doc_id }); };

// Runs `work` and shows its errors; the next run aborts it. Shows `waiting` while it takes long.
async function run(work, waiting = "Searching…") {
  state.controller?.abort();
  const controller = state.controller = new AbortController();
  error.hidden = stop.hidden = goOn.hidden = true;
  const timer = setTimeout(() => { showText(waiting); progress.hidden = false; progress.removeAttribute("value"); }, WAITING_DELAY);
  try {
    await inTurn(controller.signal, () => work(controller.signal, () => clearTimeout(timer)));
  } catch (reason) {
    if (reason.name === "AbortError") return;
    if (state.answered && state.view === "results") showStatus(state.last, { announce: false, reading: false });
    else { showText(""); showDetails(false); }
    showError(reason);
  } finally {
    clearTimeout(timer);
    if (state.controller === controller) progress.hidden = stop.hidden = true;
  }
}

function showError({ message }) {
  error.querySelector("span").textContent = message;
  error.hidden = false;
}

// A service that is busy with other people's searches, or reads its first documents, is asked again.
async function inTurn(signal, work) {
  for (let tries = 0; ; tries++) {
    const empty = state.about?.reading != null && !state.about.documents;
    try { return await work(); }
    catch (reason) { if (reason.status !== 503 || (tries >= TRIES && !empty)) throw reason; }
    showText(empty ? "Waiting for the first documents…" : "Waiting for other searches…");
    await pause(signal);
  }
}

const pause = signal => new Promise((resolve, reject) => {
  setTimeout(resolve, PAUSE);
  signal.addEventListener("abort", () => reject(signal.reason), { once: true });
});

// Loads the service's settings unless they are loaded already.
async function loadAbout(signal) {
  if (state.about) return;
  const about = await getJson("/about", signal);
  byId("reports").hidden = !about.reports;
  showAbout(about);
  if (about.model && about.stages === 1) showWeights(about, () => search({ newQuery: false }));
}

// Documents and what happens in the background change while the page is open.
async function refreshAbout(signal) {
  showAbout(await getJson("/about", signal).catch(() => state.about));
}

function showAbout(about) {
  state.about = about;
  byId("failing").hidden = !about.failing.length;
  byId("failing").textContent = `The service reports: ${about.failing.join("; ")}.`;
  welcome(about, rankers(about));
  watchReading();
}

let watching = 0;  // the timer

// Shows how many documents of new and changed files have been read, until all are.
function watchReading() {
  const { reading } = state.about, line = byId("reading-files");
  line.hidden = reading === null;
  clearTimeout(watching);
  if (reading === null) return;
  line.textContent = `New and changed files are being read: ${reading.toLocaleString("en")} documents so far.`;
  watching = setTimeout(refreshAbout, PAUSE);
}

let beside = new AbortController();  // of the menus and the spelling, which are asked for once a query

// newQuery: false to search again for the same query, with other weights or more time.
function search({ newQuery }) {
  if (!state.query) return;
  byId("welcome").hidden = true;
  state.ms = 0;
  if (newQuery) { beside.abort(); beside = new AbortController(); state.answered = false; state.top = TOP; more.hidden = true; showText(""); byId("reading").textContent = byId("notes").textContent = ""; forgetDrawings(); byId("hits").replaceChildren(); clearRankings(byId("compare")); showChips(byId("chips"), { ...state, parts: [] }, change); byId("suggestion").hidden = true; if (state.about) refreshAbout(beside.signal); }
  run(async (signal, started) => {
    await loadAbout(signal);
    if (state.view === "compare") await compare(signal, started);
    else await searchUntilComplete(signal, started, !state.answered);
  });
}

// Goes on by itself while the page is visible, until everything is read that the plan asks for, or nothing more is.
async function searchUntilComplete(signal, started, newQuery) {
  let answer = await searchOnce(signal, started, newQuery);
  for (let most = -1, idle = 0; !answer.exact && idle < IDLE_ROUNDS;) {
    if (answer.pairs > most) [most, idle] = [answer.pairs, 0];
    else { idle++; await pause(signal); }
    await visible(signal);
    answer = await searchOnce(signal, started, false);
  }
  showStatus(state.last, { announce: true, reading: false });
}

// Shows the answers of one search, and returns the last one. Of a search that goes on, those that have read nothing are not shown.
async function searchOnce(signal, started, newQuery) {
  let answer, first = newQuery;
  const before = state.ms;
  for await (answer of searchStream(request("bert"), signal)) {
    started();
    if (first) showNewQuery(answer);
    if (newQuery || answer.scored || answer.exact || !answer.models.length || !answer.hits.length) {
      state.last = { ...answer, top: state.top, sorted: state.sort !== "" };
      showHits(byId("hits"), state.last, state.about, state.firstStageRanks, open);
    }
    state.ms = before + answer.timings_ms.total;
    showStatus(state.last, { announce: first, reading: true });
    first = false;
  }
  showMore(state.last);
  return answer;
}

function showMore({ hits, top }) { more.hidden = hits.length < top || top >= MOST; }

function showNewQuery(answer) {
  state.firstStageRanks = new Map(state.sort ? [] : answer.hits.map((hit, index) => [hit.doc_id, index + 1]));
  const weight = request("bert").first_stage_weight ?? state.about.first_stage_weight;
  state.withoutWords = weight !== 0 && answer.hits.length > 0 && answer.hits.every(hit => !hit.first_stage);
  showBeside(answer);
}

// What is shown once for a query in either view: its chips and menus, and a likely misspelling.
function showBeside(answer) {
  state.answered = true;
  showChips(byId("chips"), { ...state, parts: answer.parsed.parts }, change, queryField);
  const dated = state.about.keywords.includes("modified") && answer.hits.some(hit => hit.source.modified);
  loadFilters(byId("menus"), state, beside.signal, { dated, depth: state.about.depth }, change);
  suggest(beside.signal);
}

more.addEventListener("click", () => {
  state.top = Math.min(state.last.top + TOP, MOST);
  search({ newQuery: false });
});

async function visible(signal) {
  if (document.visibilityState === "visible") return;
  await new Promise(resolve => document.addEventListener("visibilitychange", resolve, { once: true, signal }));
}

stop.addEventListener("click", () => {
  state.controller?.abort();
  progress.hidden = true;
  showStatus(state.last, { announce: true, reading: false });
  (goOn.hidden ? details : goOn).focus();
});
goOn.addEventListener("click", () => { details.focus(); search({ newQuery: false }); });
details.addEventListener("click", () => {
  byId("how").hidden = !byId("how").hidden;
  details.setAttribute("aria-expanded", !byId("how").hidden);
});

byId("save").addEventListener("click", ({ target: { dataset: { type } } }) => {
  if (type) saveResults(request("bert"), type).catch(showError);
});

async function suggest(signal) {
  const { correction } = await getJson(`/spelling?${new URLSearchParams({ query: state.query, literal: state.literal })}`, signal).catch(() => ({}));
  if (!correction) return;
  const link = element("a", { href: `#${parameters({ q: correction })}` }, correction);
  byId("suggestion").replaceChildren("Did you mean ", link, "?");
  byId("suggestion").hidden = false;
}

// changes: q, literal or sort of the search, and filters: field → function from its present filter to the new one ("" for
// none), since what the user sees may precede his last choice.
function change({ filters = {}, ...changes }) {
  const next = Object.fromEntries(Object.entries(filters).map(([field, replace]) => [field, replace(state.filters[field] ?? "")]));
  const kept = Object.fromEntries(Object.entries({ ...state.filters, ...next }).filter(([, filter]) => filter));
  writeUrl({ ...changes, filters: kept });
}

// All rankings at once, each in its column as it comes.
async function compare(signal, started) {
  const { embedding_model, model } = state.about, columns = [[firstStage(state.about), "first_stage"]];
  if (embedding_model) columns.push(["Embedding", "embedding"]);
  if (model) columns.push([rankers(state.about), "bert"]);
  const section = byId("compare"), names = columns.map(([name]) => name);
  showColumns(section, names, TOP);
  showText("Ranking…");
  const controller = new AbortController(), ended = AbortSignal.any([signal, controller.signal]);
  const rankings = await Promise.all(columns.map(async ([name, by], column) => {
    let answer;
    for await (answer of searchStream({ ...request(by), budget_ms: COMPARE_BUDGET }, ended)) {
      started();
      if (!column && !state.answered) showBeside(answer);
      showRanking(section, column, name, answer, open, state.about.unit);
    }
    showRanking(section, column, name, answer, open, state.about.unit, true);
    return [name, answer];
  })).finally(() => controller.abort());  // if one fails, the others end
  showText(rankings.some(([, answer]) => answer.hits.length) ? `${rankings.length} rankings compared` : noResults(rankings[0][1], state.filters));
  showChanges(section, rankings);
}

// on: whether there are details of the search; they are open if the user opened them.
function showDetails(on) {
  details.hidden = !on;
  byId("how").hidden = !on || details.getAttribute("aria-expanded") !== "true";
}

// A line without details. It is announced to screen readers.
function showText(text) {
  status.textContent = announcement.textContent = text;
  details.hidden = byId("notice").hidden = goOn.hidden = true;
}

// announce: whether screen readers announce the line; not for every intermediate answer. reading: whether more is being read.
function showStatus(answer, { announce, reading: goesOn }) {
  const line = summary(answer, { ms: state.ms, reading: goesOn });
  const told = notice(answer, state);
  status.textContent = line;
  byId("notice").textContent = told;
  byId("notice").hidden = !told;
  byId("reading").textContent = reading(answer, state.about);
  byId("notes").textContent = notes(answer, state.about);
  showDetails(answer.hits.length > 0);
  progress.hidden = stop.hidden = !goesOn;
  if (!goesOn) showMore(answer);
  goOn.hidden = goesOn || answer.exact;
  progress.value = (answer.pairs - answer.embedded) / (answer.planned || answer.segments || 1);
  if (announce) announcement.textContent = `${line.replaceAll(" ·", ",")}. ${told}`.trim();
}

function setView(name) {
  state.view = name;
  byId("results").hidden = name !== "results";
  byId("compare").hidden = name !== "compare";
}

// The URL's fragment holds query, filters, view and opened document, so that all can be linked and
// the back button works.
function readUrl() {
  const given = new URLSearchParams(location.hash.slice(1)), doc = given.get("doc");
  given.delete("doc");
  if (given.toString() !== state.shown) showSearch(given);
  state.shown = given.toString();
  if (!doc) closeDocument();
  else if (openDocument() !== doc) showDocument(state.opened?.doc_id === doc ? state.opened : { doc_id: doc, title: "", lead: "" });
}

function showSearch(given) {
  setView(given.get("view") === "compare" ? "compare" : "results");
  queryField.value = state.query = (given.get("q") ?? "").trim();
  state.filters = Object.fromEntries(given.getAll("filter").map(text => text.match(FILTER)?.slice(1)).filter(Boolean));
  state.sort = given.get("sort") ?? "";
  state.literal = given.get("literal") === "true";
  document.title = state.query ? `${state.query} – Birchbark` : "Birchbark";
  byId("filters").hidden = !state.query;
  if (state.query) { search({ newQuery: true }); return; }
  state.controller?.abort();
  beside.abort();
  state.answered = false;
  showText("");
  byId("results").hidden = byId("compare").hidden = byId("suggestion").hidden = true;
  byId("welcome").hidden = false;
  run(async (signal, started) => {
    await loadAbout(signal);
    started();
    showText("");
  }, "Connecting…");
}

const showDocument = hit => readDocument(hit, state, () => state.about, doc => `#${parameters({ doc })}`, () => location.replace(`#${parameters()}`));  // so that Back does not open it again

function parameters({ q = state.query, filters = state.filters, literal = state.literal, sort = state.sort, view = state.view, doc } = {}) {
  const given = new URLSearchParams({ q });
  for (const [field, value] of Object.entries(filters)) given.append("filter", `${field}=${value}`);
  if (sort) given.set("sort", sort);
  if (literal) given.set("literal", "true");
  if (view === "compare") given.set("view", "compare");
  if (doc) given.set("doc", doc);
  return given;
}

function writeUrl(changes) {
  const given = parameters(changes).toString();
  if (given === state.shown) state.shown = null;  // the same search once more
  location.hash = given;
  readUrl();  // at once, since "hashchange" comes after what the user does next
}

byId("search-form").addEventListener("submit", event => {
  event.preventDefault();
  const q = queryField.value.trim();
  writeUrl(q === state.query ? {} : { q, filters: {}, literal: false });
});
error.querySelector("button").addEventListener("click", () => { state.shown = null; readUrl(); });
for (const button of document.querySelectorAll(".view")) button.addEventListener("click", () => {
  writeUrl({ view: button.dataset.view });
  document.querySelector(`.view:not([data-view="${button.dataset.view}"])`).focus();
});
addEventListener("hashchange", readUrl);
addEventListener("resize", () => { if (state.view === "compare") drawLines(byId("compare")); });
addEventListener("keydown", event => {
  if (document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.isComposing) return;
  const down = event.key === "ArrowDown", up = event.key === "ArrowUp";
  if ((!down && !up) || event.target.closest("[type=range], select, .menu[open]")) return;
  const titles = [...document.querySelectorAll("main section:not([hidden]) .title")];
  const index = titles.indexOf(event.target.closest("main li")?.querySelector(".title")), next = titles[index + (down ? 1 : -1)];
  if (next) { event.preventDefault(); next.focus(); next.closest("li").scrollIntoView({ block: "nearest" }); }
  else if (up && index === 0) { event.preventDefault(); queryField.focus(); }
});

readUrl();
