// How does the page show the operators that it found in a query, and search for the same text literally?

import { element } from "./dom.js";

const chip = text => element("span", { class: "chip" }, text);

// parsed: how the service understood the query. literal: whether nothing in it was an operator.
// takeLiterally: called with whether nothing should be one.
export function showOperators(line, parsed, literal, takeLiterally) {
  const chips = [
    ...parsed.phrases.map(phrase => chip(`with “${phrase}”`)),
    ...parsed.excluded.map(text => chip(`without “${text}”`)),
    ...parsed.filters.map(([field, value]) => chip(`${field}: ${value}`)),
  ];
  line.hidden = !chips.length && !literal;
  if (line.hidden) return;
  const button = element("button", { type: "button", onclick: () => takeLiterally(!literal) }, literal ? "Use operators" : "Search literally");
  line.replaceChildren(...(literal ? [chip("taken literally")] : chips).flatMap(one => [one, " "]), button);
}
