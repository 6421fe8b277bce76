// What restricts the search? A chip for each operator of the query and each value of a filter; a click removes it.

import { element } from "./dom.js";
import { alternatives, fieldName, filterText } from "./filter_text.js";

let next = null;  // the position of the chip that gets the focus when the chips are shown again

// parts: the query as the service understood it. literal: whether nothing in it was taken as an operator. filters: field → filter.
// change: called with the changes of the search. fallback: gets the focus after the last chip was removed; none while the
// service has not answered yet.
export function showChips(list, { parts, literal, filters }, change, fallback) {
  const operators = parts.flatMap((part, index) => part.kind === "text" ? [] : [chip(operatorText(part), { q: without(parts, index) })]);
  const chosen = Object.entries(filters).flatMap(([field, filter]) => alternatives(filter).map(one =>
    chip(`${fieldName(field)}: ${filterText(one)}`, { filters: { [field]: now => alternatives(now).filter(other => other !== one).join("|") } })));
  const taken = literal ? [chip("taken literally", { literal: false })] : [];
  const toggle = operators.length ? [element("button", { type: "button", class: "quiet", onclick: () => { next = 0; change({ literal: true }); } }, "Take literally")] : [];
  const chips = [...taken, ...operators, ...chosen];
  list.replaceChildren(...chips, ...toggle);
  if (!fallback) return;
  if (next !== null && document.activeElement === document.body) (chips[Math.min(next, chips.length - 1)] ?? fallback).focus();
  next = null;

  function chip(text, changes) {
    const remove = () => { next = [...list.children].indexOf(button); change(changes); };
    const button = element("button", { type: "button", class: "chip active", title: "Remove", "aria-label": `Remove: ${text}`, onclick: remove },
      text, element("span", { "aria-hidden": "true" }, " ×"));
    return button;
  }
}

const operatorText = ({ kind, value, field }) =>
  kind === "phrase" ? `with “${value}”` : kind === "excluded" ? `without “${value}”` : `${fieldName(field)}: ${filterText(value)}`;

const without = (parts, index) => parts.toSpliced(index, 1).map(part => part.source).join("").trim().replace(/\s+/g, " ");
