// Where is a part of a document's contents in the elements that show them, and how is it marked?
//
// Positions count characters that are no white space, as the service counts them (shown_text.py).

const WHITE = /[\s\x1c-\x1f\x85\ufeff]/;
const SKIPPED = "rt, rp, .beside";  // what is shown beside the contents
const LINK_TARGETS = /\]\([^()]*\)|<[^<>]*>/g;  // of Markdown, and tags: what is not shown
const letters = text => text.replace(/[^\p{L}\p{N}]+/gu, "");

// The characters of a text, and for each code point of it, how many of them are before.
export function countCharacters(text) {
  const bare = [], before = [];
  for (const character of text) {
    before.push(bare.length);
    if (!WHITE.test(character)) bare.push(character);
  }
  before.push(bare.length);
  return { bare, before };
}

// The characters that an element shows, and where each of them is.
export function shownCharacters(root) {
  const bare = [], nodes = [], firsts = [], offsets = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT,
    node => node.nodeType === Node.TEXT_NODE ? NodeFilter.FILTER_ACCEPT : node.matches(SKIPPED) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_SKIP);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    nodes.push(node);
    firsts.push(bare.length);
    let offset = 0;
    for (const character of node.data) {
      if (!WHITE.test(character)) { bare.push(character); offsets.push(offset); }
      offset += character.length;
    }
  }
  firsts.push(bare.length);
  return { bare, nodes, firsts, offsets };
}

// Where the contents' characters from start to end are shown; null unless all that is shown there is them, and most of them are
// shown there. runs: [shown, position, length] of characters of the contents, in order.
export function findShown([start, end], runs, contents, shown) {
  let from = -1, to = -1, aligned = "";
  for (const [at, position, length] of runs) {
    const first = Math.max(start, position), last = Math.min(end, position + length);
    if (position >= end) break;
    if (first >= last) continue;
    if (from < 0) from = at + first - position;
    to = at + last - position;
    aligned += contents.slice(first, last).join("");
  }
  const found = letters(aligned), seen = from < 0 ? "" : letters(shown.slice(from, to).join(""));
  const wanted = letters(contents.slice(start, end).join("").replace(LINK_TARGETS, ""));
  return found && found === seen && 2 * found.length >= wanted.length ? [from, to] : null;
}

// Puts elements around the shown characters of each range, in every text node that has some of them; returns them by range.
// ranges: in order, without overlap, none empty. make: creates the element for the range with this number.
export function wrap(shown, ranges, make) {
  const wrapped = ranges.map(() => []);
  let index = shown.nodes.length - 1;
  for (let number = ranges.length - 1; number >= 0; number--) {  // from the end, so that what is before stays in its node
    const [from, to] = ranges[number];
    while (shown.firsts[index] >= to) index--;
    for (let at = index; at >= 0 && shown.firsts[at + 1] > from; at--) {
      const first = Math.max(from, shown.firsts[at]), last = Math.min(to, shown.firsts[at + 1]);
      if (first >= last) continue;
      const node = shown.nodes[at], begin = shown.offsets[first], end = shown.offsets[last - 1] + shown.bare[last - 1].length;
      if (end < node.data.length) node.splitText(end);
      const part = begin ? node.splitText(begin) : node, around = make(number);
      part.replaceWith(around);
      around.append(part);
      wrapped[number].unshift(around);
    }
  }
  return wrapped;
}
