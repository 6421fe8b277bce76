// How does the page react to queries, filters, sliders, changes of view, and the keyboard?

import { getJson, searchStream } from "./api.js";
import { clearRankings, drawLines, showChanges, showColumns, showRanking } from "./compare.js";
import { element } from "./dom.js";
import { clearFilters, loadFilters } from "./filters.js";
import { clearHits, showHits } from "./hits.js";
import { showOperators } from "./operators.js";
import { closeDocument, openDocument, readDocument } from "./reader.js";
import { counted, describe, firstStage, NO_RESULTS, rankers } from "./status.js";
import { welcome } from "./welcome.js";

const byId = name => document.getElementById(name);
const TOP = 10, MOST = 100;  // results at first, and at most
const queryField = byId("query"), status = byId("status"), announcement = byId("announcement"), progress = byId("progress"), error = byId("error"), stop = byId("stop"), more = byId("more");
const state = { query: "", literal: false, filters: {}, sort: "", view: "results", about: null, controller: null, weightsChanged: false, firstStageRanks: new Map(), last: null, top: TOP };
const SLIDER_DELAY = 60;  // milliseconds from a slider's last movement to the search
const WAITING_DELAY = 400;  // milliseconds until the page shows that it is waiting
const COMPARE_BUDGET = 10_000;  // milliseconds per ranking in the comparison

function chosenWeights() {
  if (!state.weightsChanged) return {};
  const weights = [...byId("segment-weights").querySelectorAll("input")].map(input => Number(input.value));
  return { first_stage_weight: Number(byId("a").value), ...(state.about.weights ? { weights } : {}) };
}

const request = by => ({ query: state.query, ...(state.literal ? { literal: true } : {}), by, top: state.top, filters: state.filters, ...(by === "bert" && state.sort ? { sort: state.sort } : {}), ...(by === "bert" ? chosenWeights() : {}) });
const open = hit => { state.opened = hit; writeUrl({ doc: hit.doc_id }); };

// Runs `work` and shows its errors; the next run aborts it. Shows `waiting` while it takes long.
async function run(work, waiting = "Searching…") {
  state.controller?.abort();
  const controller = state.controller = new AbortController();
  error.hidden = stop.hidden = true;
  const timer = setTimeout(() => { showText(waiting); progress.hidden = false; progress.removeAttribute("value"); }, WAITING_DELAY);
  try {
    await work(controller.signal, () => clearTimeout(timer));
  } catch (reason) {
    if (reason.name === "AbortError") return;
    showText("");
    error.querySelector("span").textContent = reason.message;
    error.hidden = false;
  } finally {
    clearTimeout(timer);
    if (state.controller === controller) progress.hidden = stop.hidden = true;
  }
}

// Loads the service's settings unless they are loaded already.
async function loadAbout(signal) {
  if (state.about) return;
  const about = await getJson("/about", signal);
  state.about = about;
  byId("reports").hidden = !about.reports;
  byId("weights").hidden = !about.model || about.stages > 1;
  welcome(about, rankers(about));
  if (about.model && about.stages === 1) resetWeights();
}

// newQuery: false to search again for the same query, with other weights or more time.
function search({ newQuery }) {
  if (!state.query) return;
  byId("welcome").hidden = true;
  if (newQuery) { state.top = TOP; more.hidden = true; clearHits(byId("hits")); clearFilters(byId("filters")); clearRankings(byId("compare")); byId("suggestion").hidden = byId("operators").hidden = true; }
  run(async (signal, started) => {
    await loadAbout(signal);
    if (state.view === "compare") await compare(signal, started);
    else await searchUntilComplete(signal, started, newQuery);
  });
}

// Goes on by itself while the page is visible, until everything is read that the plan asks for.
async function searchUntilComplete(signal, started, newQuery) {
  let answer = await searchOnce(signal, started, newQuery);
  if (newQuery) { suggest(signal); loadFilters(byId("filters"), state, signal, narrow, { dated: answer.hits.some(hit => hit.source.modified), reorder }); }
  for (let before = -1; !answer.exact && answer.hits.length && answer.pairs > before;) {
    before = answer.pairs;
    await visible(signal);
    stop.hidden = false;
    answer = await searchOnce(signal, started, false);
  }
}

// Shows the answers of one search, and returns the last one.
async function searchOnce(signal, started, newQuery) {
  let answer, first = true, shown = false;
  for await (answer of searchStream(request("bert"), signal)) {
    started();
    if (newQuery && first) {
      showOperators(byId("operators"), answer.parsed, state.literal, takeLiterally);
      state.firstStageRanks = new Map(state.sort ? [] : answer.hits.map((hit, index) => [hit.doc_id, index + 1]));
      const weight = request("bert").first_stage_weight ?? state.about.first_stage_weight;
      state.withoutWords = weight !== 0 && answer.hits.length > 0 && answer.hits.every(hit => !hit.first_stage);
    }
    if (newQuery || answer.scored || !answer.hits.length) { showHits(byId("hits"), answer, state.about, state.firstStageRanks, open); shown = true; }
    showStatus(answer, newQuery && first);
    first = false;
  }
  state.last = answer;
  more.hidden = answer.hits.length < state.top || state.top >= MOST;
  if (shown || answer.exact) showStatus(answer, true, true);
  else { showText("The service is overloaded; the results have not changed."); offerRetry("Try again"); }
  return answer;
}

more.addEventListener("click", () => {
  state.top = Math.min(state.top + TOP, MOST);
  search({ newQuery: false });
});

async function visible(signal) {
  if (document.visibilityState === "visible") return;
  await new Promise(resolve => document.addEventListener("visibilitychange", resolve, { once: true, signal }));
}

stop.addEventListener("click", () => {
  state.controller?.abort();
  stop.hidden = progress.hidden = true;
  showStatus(state.last, true, true);
  queryField.focus();
});

async function suggest(signal) {
  const { correction } = await getJson(`/spelling?${new URLSearchParams({ query: state.query, literal: state.literal })}`, signal).catch(() => ({}));
  if (!correction) return;
  const link = element("a", { href: `#${parameters({ q: correction })}` }, correction);
  byId("suggestion").replaceChildren("Did you mean ", link, "?");
  byId("suggestion").hidden = false;
}

function narrow(field, value) {
  const { [field]: _, ...others } = state.filters;
  state.filters = value ? { ...others, [field]: value } : others;
  writeUrl();
}

function takeLiterally(literal) {
  state.literal = literal;
  writeUrl();
}

function reorder(sort) {
  state.sort = sort;
  writeUrl();
}

// All rankings at once, each in its column as it comes.
async function compare(signal, started) {
  const { compare_embedding, model } = state.about, columns = [[firstStage(state.about), "first_stage"]];
  if (compare_embedding) columns.push(["Embedding", "embedding"]);
  if (model) columns.push([rankers(state.about), "bert"]);
  const section = byId("compare"), names = columns.map(([name]) => name);
  showColumns(section, names, TOP);
  showText("Ranking…");
  const rankings = await Promise.all(columns.map(async ([name, by], column) => {
    let answer;
    for await (answer of searchStream({ ...request(by), budget_ms: COMPARE_BUDGET }, signal)) {
      started();
      showRanking(section, column, name, answer, open, state.about.unit);
    }
    showRanking(section, column, name, answer, open, state.about.unit, true);
    return [name, answer];
  }));
  const found = rankings[0][1].hits.length;
  showText(found ? "" : NO_RESULTS, "", found ? `${rankings.length} rankings compared.` : NO_RESULTS);
  showChanges(section, rankings);
}

// spoken: what screen readers announce; null for nothing.
function showText(text, notes = "", spoken = text) {
  status.textContent = text;
  byId("notes").textContent = notes;
  if (spoken !== null) announcement.textContent = spoken;
}

const offerRetry = label => status.append(" ", element("button", { type: "button", onclick: () => search({ newQuery: false }) }, label));

// announce: whether screen readers announce the status; not for every intermediate answer.
function showStatus(answer, announce, final = false) {
  const { candidates, planned, hits } = answer, { text, notes, retry } = describe(answer, state.about, final, Object.keys(state.filters).length > 0);
  progress.hidden = final || !candidates;
  progress.value = (answer.pairs - answer.embedded) / (planned || answer.segments || 1);
  const without = state.withoutWords && hits.length ? "None of these documents has the words of the query; they are nearest in meaning." : "";
  const told = final && answer.unanswered ? `Probably nothing in this folder answers this. ${without}`.trim() : without;
  const shown = told ? [told, `${text} ${notes}`] : [text, notes];
  showText(...shown, announce ? `${counted(hits.length, "result")}. ${shown[0]}` : null);
  if (retry) offerRetry(retry);
}

function showWeights() {
  byId("a-value").textContent = Number(byId("a").value).toFixed(2);
  byId("n-value").textContent = byId("n").value;
  const count = state.about.weights ? Number(byId("n").value) : 0, sliders = byId("segment-weights");
  while (sliders.children.length > count) sliders.lastChild.remove();
  while (sliders.children.length < count) {
    const rank = sliders.children.length + 1, weight = state.about.weights[rank - 1] ?? 1 / 2 ** (rank - 1);
    const value = element("span", { class: "value", "aria-hidden": "true" });  // an <output> would take the label from the slider
    sliders.append(element("label", {}, `Weight of segment ${rank} `, value,
      element("input", { type: "range", min: 0, max: 1, step: 0.01, value: weight, oninput: onWeightInput })));
  }
  for (const label of sliders.children) label.querySelector(".value").textContent = Number(label.querySelector("input").value).toFixed(2);
}

let sliderTimer = 0;
function onWeightInput() {
  state.weightsChanged = true;
  showWeights();
  clearTimeout(sliderTimer);
  sliderTimer = setTimeout(() => search({ newQuery: false }), SLIDER_DELAY);
}

function resetWeights() {
  const { first_stage_weight: a, weights } = state.about;
  state.weightsChanged = false;
  byId("a").value = a;
  byId("n").max = Math.max(5, weights?.length ?? 1);
  byId("n").value = weights?.length ?? 1;
  byId("n").closest("label").hidden = !weights;
  byId("segment-weights").replaceChildren();
  showWeights();
}

function setView(name) {
  state.view = name;
  for (const button of document.querySelectorAll(".view")) button.setAttribute("aria-pressed", button.dataset.view === name);
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
  state.filters = Object.fromEntries(given.getAll("filter").map(text => [text.slice(0, text.indexOf("=")), text.slice(text.indexOf("=") + 1)]));
  state.sort = given.get("sort") ?? "";
  state.literal = given.get("literal") === "true";
  document.title = state.query ? `${state.query} – Birchbark` : "Birchbark";
  if (state.query) { search({ newQuery: true }); return; }
  state.controller?.abort();
  showText("");
  byId("results").hidden = byId("compare").hidden = byId("suggestion").hidden = byId("operators").hidden = true;
  byId("welcome").hidden = false;
  run(async (signal, started) => {
    await loadAbout(signal);
    started();
    showText("");
  }, "Connecting…");
}

const showDocument = hit => readDocument(hit, state, () => state.about, () => writeUrl());

function parameters({ q = queryField.value.trim(), filters = state.filters, doc } = {}) {
  const given = new URLSearchParams({ q });
  for (const [field, value] of Object.entries(filters)) given.append("filter", `${field}=${value}`);
  if (state.sort) given.set("sort", state.sort);
  if (state.literal) given.set("literal", "true");
  if (state.view === "compare") given.set("view", "compare");
  if (doc) given.set("doc", doc);
  return given;
}

function writeUrl(changes) {
  const given = parameters(changes);
  if (location.hash.slice(1) !== given.toString()) location.hash = given;
  else { state.shown = null; readUrl(); }
}

byId("search-form").addEventListener("submit", event => { event.preventDefault(); if (queryField.value.trim() !== state.query) state.literal = false; writeUrl({ filters: queryField.value.trim() === state.query ? state.filters : {} }); });
error.querySelector("button").addEventListener("click", () => { state.shown = null; readUrl(); });
for (const button of document.querySelectorAll(".view")) button.addEventListener("click", () => { setView(button.dataset.view); writeUrl(); });
for (const name of ["a", "n"]) byId(name).addEventListener("input", onWeightInput);
byId("reset").addEventListener("click", () => { resetWeights(); search({ newQuery: false }); });
addEventListener("hashchange", readUrl);
addEventListener("resize", () => { if (state.view === "compare") drawLines(byId("compare")); });
addEventListener("keydown", event => {
  if (document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
  const down = event.key === "ArrowDown", up = event.key === "ArrowUp";
  if ((!down && !up) || event.target.matches("[type=range]")) return;
  const titles = [...document.querySelectorAll("main section:not([hidden]) .title")];
  const index = titles.indexOf(document.activeElement), next = titles[index + (down ? 1 : -1)];
  if (next) { event.preventDefault(); next.focus(); next.closest("li").scrollIntoView({ block: "nearest" }); }
  else if (up && index === 0) { event.preventDefault(); queryField.focus(); }
});

readUrl();
