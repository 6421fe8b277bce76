// How does a person judge? One document at a time, by the keys 0 to 3, and each grade is stored at once.

import { getJson, postJson, storeJson } from "/page/api.js";
import { plainView } from "/page/document_views.js";
import { element } from "/page/dom.js";
import { countCharacters, findShown, shownCharacters, wrap } from "/page/marks.js";

const $ = id => document.getElementById(id);
const MARKED = 3;  // best sentences
let items = [], at = 0, controller = null, seen = false;  // of all questions: { question, number, document, of }

const isOpen = item => item.document.grade === null && !item.question.skipped;

function tell(error) {
  $("error").hidden = !error;
  $("error").textContent = error?.message ?? "";
}

const listed = questions => questions.flatMap((question, index) => question.documents.map((found, place, all) => ({ question, number: index + 1, document: found, of: [place + 1, all.length] })));

function showProgress() {
  const judged = items.filter(item => item.document.grade !== null).length;
  $("done").textContent = `${judged.toLocaleString("en")} of ${items.length.toLocaleString("en")} documents judged`;
  $("progress").value = items.length ? judged / items.length : 1;
}

function showPlace() {
  const { number, of } = items[at];
  $("place").textContent = `Question ${number} of ${items.at(-1).number}, document ${of[0]} of ${of[1]}.`;
}

// index: of the item that is shown; −1 for none left.
async function show(index) {
  controller?.abort();
  controller = new AbortController();
  const item = items[index];
  $("judging").hidden = !item;
  $("finished").hidden = Boolean(item);
  $("finished").querySelector("h2").textContent = items.some(one => one.document.grade === null) ? "The other questions were skipped" : "All documents are judged";
  showProgress();
  tell(null);
  if (!item) return;
  at = index;
  const { question, document: { doc_id: id, grade } } = item, { signal } = controller;
  showPlace();
  $("drafted").hidden = !question.drafted;
  $("question").textContent = question.text;
  showWords(false);
  for (const button of $("grades").children) button.setAttribute("aria-pressed", Number(button.value) === grade);
  $("document-path").textContent = "";
  seen = false;
  $("contents").replaceChildren("Opening…");
  const path = `/documents/${encodeURIComponent(id)}`;
  try {
    const opened = await getJson(path, signal);
    $("document-path").textContent = opened.fields.path ?? id;
    const view = plainView(opened);
    $("contents").className = opened.fields.type === "code" ? "plain code" : view.kind;
    $("contents").replaceChildren(...view.nodes);
    seen = true;
    $("document").scrollTop = 0;
    const scored = await getJson(`${path}?${new URLSearchParams({ query: question.text })}`, signal);
    mark(opened.contents, view.runs, scored.segments);
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!seen) $("contents").replaceChildren("This document cannot be shown. If documents have changed, run the command again.");
    tell(error);
  }
}

function mark(contents, runs, segments) {
  const best = segments.toSorted((a, b) => b.score - a.score).slice(0, MARKED), whole = countCharacters(contents);
  const characters = shownCharacters($("contents")), ranges = [];
  for (const { start, end } of best.toSorted((a, b) => a.start - b.start)) {
    const range = findShown([whole.before[start], whole.before[end]], runs, whole.bare, characters.bare);
    if (range && range[0] >= (ranges.at(-1)?.[1] ?? 0)) ranges.push(range);
  }
  wrap(characters, ranges, () => element("mark", { share: 1 }));
  const first = $("contents").querySelector("mark");
  if (first) $("document").scrollTop = first.offsetTop - $("document").clientHeight / 3;
}

// What is not shown cannot be judged, so that a key that is pressed twice counts once.
async function judge(grade) {
  if (!seen) return;
  const { question, document } = items[at], before = document.grade, judged = at;
  document.grade = grade;
  showNextOpen();
  try {
    await storeJson("/judgments", { query_id: question.query_id, doc_id: document.doc_id, grade });
  } catch (error) {
    document.grade = before;
    show(judged);
    tell(error);
  }
}

// The next document without a grade; from the beginning if there is none behind this one.
function showNextOpen() {
  const next = items.findIndex((item, index) => index > at && isOpen(item));
  show(next < 0 ? items.findIndex(isOpen) : next);
}

function showWords(shown) {
  $("rewording").hidden = !shown;
  $("question").hidden = shown;
  $("words").value = $("question").textContent;
  if (shown) $("words").select(); else $("words").blur();
}

// All systems rank the question anew; the documents that they find take the places of those before. A person
// who has gone on to another question meanwhile stays there.
async function reword(event) {
  event.preventDefault();
  const { question } = items[at], button = $("rewording").querySelector("button");
  if ($("words").value.trim() === question.text) return showWords(false);
  button.disabled = true;
  button.textContent = "Ranking…";
  try {
    const asked = await postJson("/questions", { query_id: question.query_id, text: $("words").value });
    const questions = [...new Set(items.map(item => item.question))], { document: shown, question: current } = items[at];
    items = listed(questions.map(other => other === question ? asked : other));
    if (current !== question && !$("judging").hidden) {
      at = items.findIndex(item => item.question === current && item.document === shown);
      showPlace();
      showProgress();
    } else {
      showWords(false);
      tell(null);
      const first = items.findIndex(item => item.question === asked && isOpen(item));
      if (first < 0) showNextOpen(); else show(first);
    }
  } catch (error) {
    tell(error);
  }
  button.disabled = false;
  button.textContent = "Ask";
}

function skip() {
  items[at].question.skipped = true;
  showNextOpen();
}

const move = change => show($("judging").hidden ? items.length - 1 : Math.min(Math.max(at + change, 0), items.length - 1));

document.addEventListener("keydown", event => {
  if (event.key === "Escape") showWords(false);
  if (event.ctrlKey || event.altKey || event.metaKey || event.target === $("words")) return;
  if (event.key === "ArrowLeft") move(-1);
  if ($("judging").hidden || event.repeat) return;
  if ("0123".includes(event.key)) judge(Number(event.key));
  if (event.key === "s") skip();
  if (event.key === "r") { event.preventDefault(); showWords(true); }
  if (event.key === "ArrowRight") move(1);
});
for (const button of $("grades").children) button.addEventListener("click", () => judge(Number(button.value)));
for (const button of document.querySelectorAll("[data-move]")) button.addEventListener("click", () => move(Number(button.dataset.move)));
document.querySelector("[data-skip]").addEventListener("click", skip);
$("reword").addEventListener("click", () => showWords(true));
$("keep").addEventListener("click", () => showWords(false));
$("rewording").addEventListener("submit", reword);

try {
  const { questions } = await getJson("/judgments");
  items = listed(questions);
  show(items.findIndex(isOpen));
} catch (error) {
  tell(error);
}
