// How are the passages of a hit drawn: its evidence, or the snippet before a model has read it?

import { element, formatScore, visuallyHidden } from "./dom.js";

const CONTEXT = 80;  // characters on each side of a segment
const MAX_SEGMENTS = 3;  // shown per hit
const MAX_SNIPPET = 400;  // characters
const BEFORE_MARK = 120;  // characters of a long snippet before its first mark

const context = text => element("span", { class: "context" }, text);

// The best segments in document order, with the text between them if it is short.
export function evidence(all) {
  const segments = all.slice(0, MAX_SEGMENTS), more = all.length - segments.length;
  const nodes = [];
  let end = null, after = "";
  for (const segment of segments.toSorted((a, b) => a.start - b.start)) {
    const before = Array.from(segment.before), gap = end === null ? Infinity : segment.start - end;
    if (gap <= before.length) nodes.push(context(before.slice(before.length - Math.max(0, gap)).join("")));
    else nodes.push(context(((end === null ? "" : shortenEnd(after)) + shortenStart(segment.before)).replace("… … ", "… ")));
    nodes.push(element("mark", { share: segment.score, title: `probability of relevance ${formatScore(segment.score)}, weight ${formatScore(segment.weight)}` },
      ...withTerms(segment), element("small", { "aria-hidden": "true" }, ` ${formatScore(segment.score)} × ${formatScore(segment.weight)}`),
      visuallyHidden(` (relevance ${formatScore(segment.score)}) `)));
    [end, after] = [segment.end, segment.after];
  }
  const rest = more ? [element("small", {}, `and ${more} more segment${more > 1 ? "s" : ""}`)] : [];
  return [...nodes, context(shortenEnd(after)), ...rest];
}

// segment: null if the document has no text.
export function snippet(segment) {
  if (!segment) return [];
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
