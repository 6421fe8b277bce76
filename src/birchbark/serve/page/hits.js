// How are hits drawn, and how do they move when the ranking changes?

import { beginning, element, formatScore, title, visuallyHidden } from "./dom.js";
import { answer as answerOf, canAnswer, evidence, snippet } from "./passages.js";
import { arrange, drawUnpressed } from "./ranked_list.js";
import { showSource } from "./source.js";

const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
const LIKELY = 0.7;  // probability that the best hit answers the query, above which its sentence is shown as the answer

// answer: with what was asked for, whether the hits are sorted. about: the service's settings. firstStageRanks: doc_id → rank. open: called with the hit that the user selects.
export function showHits(list, answer, about, firstStageRanks, open) {
  drawUnpressed(list, () => drawHits(list, answer, about, firstStageRanks, open));
}

// Items of documents already in the list are updated in place, so that focus and selections persist.
function drawHits(list, answer, about, firstStageRanks, open) {
  const existing = new Map([...list.children].map(item => [item.dataset.id, item]));
  const oldTops = new Map([...existing].map(([id, item]) => [id, item.getBoundingClientRect().top]));
  const maxScore = Math.max(...answer.hits.map(hit => hit.score), 1e-9);
  const settings = { about, firstStageRanks, maxScore: answer.max_score ?? maxScore, stages: answer.models.length };
  const items = answer.hits.map((hit, index) => {
    const answers = index === 0 && !answer.sorted && hit.probability >= LIKELY && canAnswer(hit);
    return update(existing.get(hit.doc_id) ?? createItem(hit, open), hit, { ...settings, rank: index + 1, answers });
  });
  arrange(list, items);
  if (reducedMotion.matches) return;
  for (const item of items) {
    const oldTop = oldTops.get(item.dataset.id);
    if (oldTop === undefined) {
      if (existing.size) item.animate({ opacity: [0, 1] }, { duration: 250 });
      continue;
    }
    const distance = oldTop - item.getBoundingClientRect().top;
    if (Math.abs(distance) > 1)
      item.animate({ transform: [`translateY(${distance}px)`, "none"] }, { duration: 350, easing: "ease-out" });
  }
}

function createItem(hit, open) {
  const item = element("li", { "data-id": hit.doc_id }, element("div", { class: "rank" }), element("div", {}, element("div", { class: "answers" }),
    element("h3", {}, element("button", { type: "button", class: "title", onclick: () => open(item.hit) })), element("p", { class: "source" }),
    element("div", { class: "evidence" }), element("details", { class: "why" }, element("summary"), element("div", { class: "parts" }))));
  return item;
}

// answers: whether the hit's best sentence is shown as the answer to the query.
function update(item, hit, { about, firstStageRanks, maxScore, stages, rank, answers }) {
  const content = JSON.stringify([hit, rank, answers, firstStageRanks.get(hit.doc_id), maxScore]);
  if (item.content === content) return item;
  [item.content, item.hit, item.className] = [content, hit, hit.scored ? "" : "unscored"];
  item.querySelector(".answers").replaceChildren(...(answers ? answerOf(hit) : []));
  const heading = item.querySelector(".title"), text = title(hit);
  if (heading.textContent !== text) heading.textContent = text;
  item.querySelector(".rank").replaceChildren(String(rank), rankChange(firstStageRanks.get(hit.doc_id), rank, firstStageRanks.size));
  showSource(item.querySelector(".source"), hit, about);
  item.querySelector(".evidence").replaceChildren(...(hit.segments.length ? evidence(hit, answers) : snippet(hit)));
  item.querySelector("summary").replaceChildren(bar(hit, maxScore), hit.scored ? "Why this rank?" : "Why this rank? Not read");
  item.querySelector(".parts").replaceChildren(...explanation(hit, maxScore, stages));
  return item;
}

// shown: how many documents of the first stage's ranking are known.
function rankChange(oldRank, rank, shown) {
  if (oldRank === undefined) {
    if (rank > shown) return "";
    const label = `up from below place ${shown} by match alone`;
    return element("span", { class: "moved up", title: label }, element("span", { "aria-hidden": "true" }, `▲ ${shown}+`), visuallyHidden(label));
  }
  const change = oldRank - rank;
  if (!change) return "";
  const [sign, direction] = change > 0 ? ["▲", "up"] : ["▼", "down"];
  const label = `${direction} ${Math.abs(change)} from the place by match alone`;
  return element("span", { class: `moved ${direction}`, title: label }, element("span", { "aria-hidden": "true" }, `${sign} ${Math.abs(change)}`), visuallyHidden(label));
}

const PARTS = [["first-stage", "match", "first_stage"], ["embedding", "embedding", "embedding"], ["evidence-part", "evidence", "evidence"]];
const nameOf = (hit, name) => name === "match" && hit.stage > 1 ? `stage ${hit.stage - 1}` : name;
const partsOf = hit => PARTS.map(([kind, name, key]) => [kind, nameOf(hit, name), hit[key]]).filter(([, , value]) => value > 0);

function bar(hit, maxScore) {
  return element("span", { class: "bar", "aria-hidden": "true" },
    ...partsOf(hit).map(([kind, , value]) => element("i", { class: kind, width: `${100 * value / maxScore}%` })));
}

// The sum that is the score, where 100 is the most that a document can have, and what each passage contributes.
function explanation(hit, maxScore, stages) {
  const percent = value => Math.round(100 * value / maxScore);
  const named = partsOf(hit).map(([kind, name, value]) => ({ kind, name, points: percent(value) }));
  const largest = named.toSorted((a, b) => b.points - a.points)[0];
  if (largest) largest.points += percent(hit.score) - named.reduce((sum, { points }) => sum + points, 0);  // so that the rounded parts add up
  const parts = named.map(({ kind, name, points }) => element("span", {}, element("span", { class: `key ${kind}`, "aria-hidden": "true" }), `${name} ${points}`));
  const sum = element("p", {}, `Score ${percent(hit.score)} of 100`, ...parts.flatMap((part, index) => [index ? " + " : " = ", part]), hit.scored ? "" : "; not read by the model", stages > 1 && hit.stage ? `; by stage ${hit.stage} of ${stages}` : "");
  const rows = hit.segments.map(segment => element("p", { class: "segment-score" }, `${percent(segment.score * segment.weight)} from a probability of relevance of ${formatScore(segment.score)}: `, beginning(segment.text.trim())));
  return [sum, ...(rows.length ? [element("p", {}, "The evidence, by passage:"), ...rows] : [])];
}
