// How are the passages of a hit drawn: its evidence, or the snippet before a model has read it?

import { element, formatScore, visuallyHidden } from "./dom.js";

const CONTEXT = 160;  // characters on each side of what is shown
const MAX_SEGMENTS = 3;  // shown per hit
const MAX_SNIPPET = 400;  // characters
const BEFORE_MARK = 120;  // characters of a long snippet before its first mark

const context = text => element("span", { class: "context" }, text);

// The best segment in its context, and up to two further ones, largest contribution first.
export function evidence(hit) {
  const others = hit.segments.filter(segment => segment.end > hit.title.length);  // the title is above them already
  const [best, ...further] = (others.length ? others : hit.segments).slice(0, MAX_SEGMENTS).map(parts);
  return [
    element("p", { class: "best" }, context(shortenStart(best.before)), marked(best), context(shortenEnd(best.after)), page(best)),
    ...further.map(segment => element("p", {}, marked(segment), page(segment))),
  ];
}

// What is shown of a segment: its sentence with most of the query's terms, or else all of it; before and after it is the
// text around.
function parts(segment) {
  const length = Array.from(segment.text).length, own = length - (segment.end - segment.start);  // a title may precede its own text
  const [start, end] = segment.sentence ?? [own, length];
  return {
    ...segment,
    ...part(segment, start, end),
    before: segment.before + part(segment, own, start).text,
    after: part(segment, end, length).text + segment.after,
  };
}

const page = segment => segment.page === null ? "" : element("span", { class: "page" }, ` page ${segment.page}`);
const marked = segment => element("mark", {}, ...withTerms(segment), visuallyHidden(` (relevance ${formatScore(segment.score)}) `));

// The text from start to end, with the terms in it.
function part({ text, marks }, start, end) {
  const inside = marks.filter(([from, to]) => start <= from && to <= end).map(([from, to]) => [from - start, to - start]);
  return { text: Array.from(text).slice(start, end).join(""), marks: inside };
}

// segment: null if the document has no text.
export function snippet(segment) {
  return segment ? [element("p", {}, ...snippetNodes(segment))] : [];
}

function snippetNodes(segment) {
  const whole = Array.from(segment.text), first = segment.marks[0]?.[0] ?? 0;
  if (whole.length <= MAX_SNIPPET) return [context(shortenStart(segment.before)), ...withTerms(segment), context(shortenEnd(segment.after))];
  const begin = first < MAX_SNIPPET / 2 ? 0 : Math.min(first, whole.indexOf(" ", first - BEFORE_MARK) + 1);
  const marks = segment.marks.filter(([, end]) => end <= begin + MAX_SNIPPET).map(([start, end]) => [start - begin, end - begin]);
  const text = whole.slice(begin, begin + MAX_SNIPPET).join("");
  return [begin ? context("… ") : context(shortenStart(segment.before)), ...withTerms({ text, marks }), context(" …")];
}

// The text with the query's terms emphasised; offsets count code points, not UTF-16 units.
function withTerms({ text, marks }) {
  const characters = Array.from(text), nodes = [], between = (start, end) => characters.slice(start, end).join("");
  let position = 0;
  for (const [start, end] of marks) {
    nodes.push(between(position, start), element("strong", {}, between(start, end)));
    position = end;
  }
  return [...nodes, between(position)];
}

// Context starts and ends between words.
function shortenStart(text) {
  if (text.length <= CONTEXT) return text;
  const tail = text.slice(-CONTEXT);
  return "… " + tail.slice(tail.indexOf(" ") + 1);
}

function shortenEnd(text) {
  if (text.length <= CONTEXT) return text + " ";
  const head = text.slice(0, CONTEXT);
  return head.slice(0, head.lastIndexOf(" ")) + " … ";
}
