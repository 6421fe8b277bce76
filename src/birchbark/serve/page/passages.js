// How are the passages of a hit drawn: its evidence, or the snippet before a model has read it?

import { element, formatScore, visuallyHidden } from "./dom.js";

const CONTEXT = 150;  // characters on each side of what is shown; the service cuts longer ones, also within words
const MAX_SEGMENTS = 3;  // shown per hit
const MAX_SNIPPET = 400;  // characters
const MAX_ANSWER = 320;  // characters of a sentence that can stand above the others
const MARKUP = /```[\w-]*|`+|^#{1,6} +|!?\[(?=[^\][\n]*\]\([^)\s]*\))|(?<=\[[^\][\n]*)\]\([^)\s]*\)/gm;
const BEFORE_MARK = 120;  // characters of a long snippet before its first mark

const context = text => element("span", { class: "context" }, text);

// The segments that are shown, largest contribution first.
function shown(hit) {
  const others = hit.segments.filter(segment => segment.end > hit.title.length);  // the title is above them already
  return (others.length ? others : hit.segments).slice(0, MAX_SEGMENTS).map(parts).map(segment => readable(segment, hit));
}

// The best segment in its context, unless it is shown as the answer, and up to two further ones.
export function evidence(hit, answers) {
  const [best, ...further] = shown(hit);
  const first = element("p", { class: "best" }, context(shortenStart(best.before)), marked(best), context(shortenEnd(best.after)), place(best));
  return [...(answers ? [] : [first]), ...further.map(segment => element("p", {}, marked(segment), place(segment)))];
}

// Whether the best sentence is short enough to be shown as an answer.
export const canAnswer = hit => hit.segments.length > 0 && shown(hit)[0].text.trim().length <= MAX_ANSWER;

// The best sentence, and the text after it.
export function answer(hit) {
  const [best] = shown(hit), after = shortenEnd(best.after);
  return [
    element("p", { class: "answer" }, visuallyHidden("Answer: "), ...withTerms(best), visuallyHidden(` (relevance ${formatScore(best.score)}) `)),
    ...(after.trim() || place(best) ? [element("p", { class: "after" }, context(after), place(best))] : []),
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

const place = segment => (segment.page ?? segment.line) === null ? "" : element("span", { class: "place" }, segment.page === null ? ` line ${segment.line}` : ` page ${segment.page}`);
const marked = segment => element("mark", {}, ...withTerms(segment), visuallyHidden(` (relevance ${formatScore(segment.score)}) `));

// The text from start to end, with the terms in it.
function part({ text, marks }, start, end) {
  const inside = marks.filter(([from, to]) => start <= from && to <= end).map(([from, to]) => [from - start, to - start]);
  return { text: Array.from(text).slice(start, end).join(""), marks: inside };
}

// Empty if the document has no text.
export function snippet(hit) {
  return hit.snippet ? [element("p", {}, ...snippetNodes(readable(hit.snippet, hit)))] : [];
}

// Of Markdown, without fences, the marks of headings and code, and the targets of links.
function readable(segment, hit) {
  if (hit.source.type !== "markdown") return segment;
  const around = text => withoutMarkup({ text, marks: [] }).text;
  return { ...segment, ...withoutMarkup(segment), before: around(segment.before), after: around(segment.after) };
}

function withoutMarkup({ text, marks }) {
  const kept = Array.from(text, () => true);
  for (const found of text.matchAll(MARKUP)) {
    const start = Array.from(text.slice(0, found.index)).length;
    kept.fill(false, start, start + Array.from(found[0]).length);
  }
  const offsets = [0];
  for (const is of kept) offsets.push(offsets.at(-1) + is);
  const moved = marks.map(([start, end]) => [offsets[start], offsets[end]]).filter(([start, end]) => start < end);
  return { text: Array.from(text).filter((_, index) => kept[index]).join(""), marks: moved };
}

function snippetNodes(segment) {
  const whole = Array.from(segment.text), first = segment.marks[0]?.[0] ?? 0;
  if (whole.length <= MAX_SNIPPET) return [context(shortenStart(segment.before)), ...withTerms(segment), context(shortenEnd(segment.after))];
  const early = Math.max(0, first - BEFORE_MARK), blank = whole.slice(early, first).findIndex(character => /\s/.test(character));
  const begin = first < MAX_SNIPPET / 2 ? 0 : early + blank + 1;
  const text = untilWord(whole.slice(begin, begin + MAX_SNIPPET).join("")), length = Array.from(text).length;
  const marks = segment.marks.map(([start, end]) => [start - begin, end - begin]).filter(([start, end]) => start >= 0 && end <= length);
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
  return "… " + tail.slice(tail.search(/\s/) + 1);
}

function shortenEnd(text) {
  if (text.length <= CONTEXT) return text + " ";
  return untilWord(text.slice(0, CONTEXT)) + " … ";
}

// The text without its last word, which may be cut; all of it if that is too long for a word, or there is no white space.
const untilWord = text => text.replace(/\s+\S{0,60}$/, "");
