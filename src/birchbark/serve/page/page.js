// How does the page react to queries, sliders, changes of view, and the keyboard?

import { getJson, postJson, searchStream } from "./api.js";
import { clearRankings, drawLines, showRankings } from "./compare.js";
import { element } from "./dom.js";
import { clearHits, showHits } from "./hits.js";
import { readDocument } from "./reader.js";
import { describe, NO_RESULTS, rankers } from "./status.js";

const byId = name => document.getElementById(name);
const queryField = byId("query"), status = byId("status"), announcement = byId("announcement"), progress = byId("progress"), error = byId("error");
const state = { query: "", view: "results", about: null, controller: null, weightsChanged: false, firstStageRanks: new Map() };
const SLIDER_DELAY = 60;  // milliseconds from a slider's last movement to the search
const WAITING_DELAY = 400;  // milliseconds until the page shows that it is waiting
const COMPARE_BUDGET = 10_000;  // milliseconds per ranking in the side-by-side view
const TOP = 10;

function chosenWeights() {
  if (!state.weightsChanged) return {};
  const weights = [...byId("segment-weights").querySelectorAll("input")].map(input => Number(input.value));
  return { first_stage_weight: Number(byId("a").value), ...(state.about.weights ? { weights } : {}) };
}

const open = hit => readDocument(hit, state.query, state.about);

// Runs `work` and shows its errors; the next run aborts it. Shows `waiting` while it takes long.
async function run(work, waiting = "Searching…") {
  state.controller?.abort();
  const controller = state.controller = new AbortController();
  error.hidden = true;
  const timer = setTimeout(() => { showText(waiting); progress.hidden = false; progress.removeAttribute("value"); }, WAITING_DELAY);
  try {
    await work(controller.signal, () => clearTimeout(timer));
  } catch (reason) {
    if (reason.name === "AbortError") return;
    showText("");
    error.textContent = reason.message;
    error.hidden = false;
  } finally {
    clearTimeout(timer);
    if (state.controller === controller) progress.hidden = true;
  }
}

// Loads the service's settings unless they are loaded already.
async function loadAbout(signal) {
  if (state.about) return;
  const about = await getJson("/about", signal);
  state.about = about;
  byId("reports").hidden = !about.reports;
  byId("weights").hidden = !about.model || about.stages > 1;
  byId("about").textContent = `${about.documents.toLocaleString("en")} documents, ranked by ${rankers(about)}.`;
  if (about.model && about.stages === 1) resetWeights();
}

// newQuery: false to search again for the same query, with other weights or more time.
function search({ newQuery }) {
  if (!state.query) return;
  byId("welcome").hidden = true;
  if (newQuery) { clearHits(byId("hits")); clearRankings(byId("compare")); }
  if (state.view === "compare") { compare(); return; }
  run(async (signal, started) => {
    await loadAbout(signal);
    const query = state.query;
    let answer, first = true, shown = false;
    for await (answer of searchStream({ query, top: TOP, ...chosenWeights() }, signal)) {
      started();
      if (newQuery && first) state.firstStageRanks = new Map(answer.hits.map((hit, index) => [hit.doc_id, index + 1]));
      if (newQuery || answer.scored || !answer.hits.length) { showHits(byId("hits"), answer, state.firstStageRanks, open); shown = true; }
      showStatus(answer, newQuery && first);
      first = false;
    }
    if (shown || answer.exact) { showStatus(answer, true, true); return; }
    showText("The service is overloaded; the results have not changed.");
    offerRetry("Try again");
  });
}

function compare() {
  run(async (signal, started) => {
    await loadAbout(signal);
    const { embedding, model, kinds, mixes_embedding: mixed } = state.about, columns = [["First stage", "first_stage"]];
    if (embedding) columns.push(["Embedding", "embedding"]);
    if (model) columns.push([mixed ? `Both and ${kinds.join(", ")}` : `With ${kinds.join(", ")}`, "bert"]);
    const query = state.query, rankings = [];
    for (const [name, by] of columns) {
      const request = { query, by, top: TOP, ...(by === "bert" ? chosenWeights() : {}) };
      const answer = await postJson("/search", { ...request, budget_ms: COMPARE_BUDGET }, signal);
      rankings.push([answer.exact ? name : `${name} (incomplete)`, answer]);
      showRankings(byId("compare"), rankings, open);
    }
    started();
    const found = rankings[0][1].hits.length;
    showText(found ? "" : NO_RESULTS, "", found ? `${rankings.length} rankings side by side.` : NO_RESULTS);
  });
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
  const { candidates, planned, hits } = answer, { text, notes, retry } = describe(answer, state.about, final);
  progress.hidden = final || !candidates;
  progress.value = (answer.pairs - answer.embedded) / (planned || answer.segments || 1);
  showText(text, notes, announce ? `${hits.length} results. ${text}` : null);
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

// The URL's fragment holds query and view, so that results can be linked and the back button works.
function readUrl() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  setView(parameters.get("view") === "compare" ? "compare" : "results");
  queryField.value = state.query = (parameters.get("q") ?? "").trim();
  document.title = state.query ? `${state.query} – Birchbark` : "Birchbark";
  if (state.query) { search({ newQuery: true }); return; }
  state.controller?.abort();
  showText("");
  byId("results").hidden = byId("compare").hidden = true;
  byId("welcome").hidden = false;
  run(async (signal, started) => {
    await loadAbout(signal);
    started();
    showText("");
  }, "Connecting…");
}

function writeUrl() {
  const parameters = new URLSearchParams({ q: queryField.value.trim(), ...(state.view === "compare" ? { view: "compare" } : {}) });
  if (location.hash.slice(1) === parameters.toString()) readUrl();
  else location.hash = parameters;
}

byId("search-form").addEventListener("submit", event => { event.preventDefault(); writeUrl(); });
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
