// What happens on the page? Queries, weights, views and keys.

import { got, streamed, asked } from "./ask.js";
import { clearBeside, drawLines, showBeside } from "./beside.js";
import { forgetHits, showHits } from "./hits.js";
import { made } from "./made.js";
import { readDocument } from "./reader.js";

const id = name => document.getElementById(name);
const field = id("query"), status = id("status"), said = id("said"), bar = id("progress"), trouble = id("trouble");
const state = { query: "", view: "results", about: null, running: null, moved: false, first: new Map() };
const PAUSE = 60;  // milliseconds after a slider moved
const SLOW = 400;  // milliseconds after which the page says what it waits for
const PATIENCE = 10_000;  // milliseconds for each ranking side by side
const TOP = 10;

function weights() {
  if (!state.moved) return {};
  const each = [...id("each").querySelectorAll("input")].map(one => Number(one.value));
  return { first_stage_weight: Number(id("a").value), ...(state.about.weights ? { weights: each } : {}) };
}

const open = hit => readDocument(hit, state.query, state.about);

async function run(work, waiting = "Searching…") {
  state.running?.abort();
  const own = state.running = new AbortController();
  trouble.hidden = true;
  const slow = setTimeout(() => { status.textContent = said.textContent = waiting; bar.hidden = false; bar.removeAttribute("value"); }, SLOW);
  try {
    await work(own.signal, () => clearTimeout(slow));
  } catch (fault) {
    if (fault.name === "AbortError") return;
    status.textContent = said.textContent = "";
    trouble.textContent = fault.message;
    trouble.hidden = false;
  } finally {
    clearTimeout(slow);
    if (state.running === own) bar.hidden = true;
  }
}

// What the service is like: asked for until it is known.
async function learnt(signal) {
  if (state.about) return;
  const about = await got("/about", signal);
  state.about = about;
  id("reports").hidden = !about.reports;
  id("weights").hidden = !about.model || about.stages > 1;
  id("about").textContent = `${about.documents.toLocaleString("en")} documents, ` +
    (about.model ? `read by ${about.model} as you ask.` : "ranked without BERT.");
  if (about.model && about.stages === 1) usual();
}

function search({ anew }) {
  if (!state.query) return;
  id("welcome").hidden = true;
  if (anew) { forgetHits(id("hits")); clearBeside(id("beside")); }
  if (state.view === "beside") { beside(); return; }
  run(async (signal, begun) => {
    await learnt(signal);
    const query = state.query;
    let answer, drawn = false;
    for await (answer of streamed({ query, top: TOP, ...weights() }, signal)) {
      begun();
      if (anew) state.first = new Map(answer.hits.map((hit, place) => [hit.doc_id, place + 1]));
      if (anew || answer.settled || !answer.hits.length) { showHits(id("hits"), answer, state.first, open); drawn = true; }
      tell(answer, anew);
      anew = false;
    }
    if (drawn || answer.exact) tell(answer, true, true);
    else again("Too much is asked of the service just now; these hits are as they were.", "Try again");
  });
}

function beside() {
  run(async (signal, begun) => {
    await learnt(signal);
    const { embedding, model } = state.about, ways = [["First stage", "first_stage"]];
    if (embedding) ways.push(["Embedding", "embedding"]);
    if (model) ways.push([model, "bert"]);
    const query = state.query, columns = [];
    for (const [name, by] of ways) {
      const request = { query, by, top: TOP, ...(by === "bert" ? weights() : {}) };
      const answer = await asked("/search", { ...request, budget_ms: PATIENCE }, signal);
      columns.push([answer.exact ? name : `${name}, as far as it was read`, answer]);
      showBeside(id("beside"), columns, open);
    }
    begun();
    status.textContent = columns[0][1].hits.length ? "" : nothing();
    said.textContent = columns[0][1].hits.length ? `${columns.length} rankings side by side.` : nothing();
  });
}

const nothing = () => "No document holds a word of this query. Try other words, or fewer.";
const seconds = ms => ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;

function again(why, name) {
  status.replaceChildren(why + " ", made("button", { type: "button", onclick: () => search({ anew: false }) }, name));
  said.textContent = why;
}

// aloud: also to those who hear the page; not ten times a second.
function tell(answer, aloud, last = false) {
  const { candidates, settled, exact, hits, timings_ms: times } = answer;
  bar.hidden = last || !candidates;
  bar.value = candidates ? settled / candidates : 0;
  if (!hits.length) status.textContent = nothing();
  else if (!last) status.textContent = `First hits after ${seconds(times.first_stage)}; ${settled} of ${candidates} documents read.`;
  else if (exact) status.textContent = `${candidates ? `${settled} of ${candidates} documents read: enough to know the best ${hits.length}. ` : ""}${seconds(times.total)}.`;
  else if (candidates) again(`Time was up: ${settled} of ${candidates} documents read in ${seconds(times.total)}; the others are where the first stage has them.`, "Read on");
  else again("The service is busy: these are the first stage’s hits, unread.", "Read them");
  if (aloud) said.textContent = `${hits.length} hits. ${status.firstChild?.textContent ?? ""}`;
}

function showWeights() {
  id("a-told").textContent = Number(id("a").value).toFixed(2);
  id("n-told").textContent = id("n").value;
  const wanted = state.about.weights ? Number(id("n").value) : 0, each = id("each");
  while (each.children.length > wanted) each.lastChild.remove();
  while (each.children.length < wanted) {
    const place = each.children.length + 1, usual = state.about.weights[place - 1] ?? 1 / 2 ** (place - 1);
    const told = made("span", { class: "value", "aria-hidden": "true" });  // an output would take the label from the slider
    each.append(made("label", {}, `Weight of sentence ${place} `, told,
      made("input", { type: "range", min: 0, max: 1, step: 0.01, value: usual, oninput: weigh })));
  }
  for (const one of each.children) one.querySelector(".value").textContent = Number(one.querySelector("input").value).toFixed(2);
}

let pausing = 0;
function weigh() {
  state.moved = true;
  showWeights();
  clearTimeout(pausing);
  pausing = setTimeout(() => search({ anew: false }), PAUSE);
}

function usual() {
  const { first_stage_weight: a, weights: each } = state.about;
  state.moved = false;
  id("a").value = a;
  id("n").max = Math.max(5, each?.length ?? 1);
  id("n").value = each?.length ?? 1;
  id("n").closest("label").hidden = !each;
  id("each").replaceChildren();
  showWeights();
}

function view(name) {
  state.view = name;
  for (const one of document.querySelectorAll(".view")) one.setAttribute("aria-pressed", one.dataset.view === name);
  id("results").hidden = name !== "results";
  id("beside").hidden = name !== "beside";
}

function fromAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  view(asked.get("view") === "beside" ? "beside" : "results");
  field.value = state.query = (asked.get("q") ?? "").trim();
  document.title = state.query ? `${state.query} – Birchbark` : "Birchbark";
  if (state.query) { search({ anew: true }); return; }
  state.running?.abort();
  status.textContent = "";
  id("results").hidden = id("beside").hidden = true;
  id("welcome").hidden = false;
  run(async (signal, begun) => {
    await learnt(signal);
    begun();
    status.textContent = said.textContent = "";
  }, "Asking the service…");
}

function toAddress() {
  const next = new URLSearchParams({ q: field.value.trim(), ...(state.view === "beside" ? { view: "beside" } : {}) });
  if (location.hash.slice(1) === next.toString()) fromAddress();
  else location.hash = next;
}

id("ask").addEventListener("submit", event => { event.preventDefault(); toAddress(); });
for (const one of document.querySelectorAll(".view")) one.addEventListener("click", () => { view(one.dataset.view); toAddress(); });
for (const name of ["a", "n"]) id(name).addEventListener("input", weigh);
id("usual").addEventListener("click", () => { usual(); search({ anew: false }); });
addEventListener("hashchange", fromAddress);
addEventListener("resize", () => { if (state.view === "beside") drawLines(id("beside")); });
addEventListener("keydown", event => {
  if (document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
  const down = event.key === "ArrowDown", up = event.key === "ArrowUp";
  if ((!down && !up) || event.target.matches("[type=range]")) return;
  const titles = [...document.querySelectorAll("main section:not([hidden]) .title")];
  const now = titles.indexOf(document.activeElement), next = titles[now + (down ? 1 : -1)];
  if (next) { event.preventDefault(); next.focus(); next.closest("li").scrollIntoView({ block: "nearest" }); }
  else if (up && now === 0) { event.preventDefault(); field.focus(); }
});

fromAddress();
