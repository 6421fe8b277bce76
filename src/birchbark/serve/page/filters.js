// How are results narrowed and sorted? By menus for the fields that divide the candidates, and by an order of the best.

import { getJson } from "./api.js";
import { datePanel } from "./dates.js";
import { element } from "./dom.js";
import { alternatives, fieldName, filterText } from "./filter_text.js";
import { folderTree } from "./folders.js";

const ORDERS = [["", "Best first"], ["-modified", "Newest first"], ["modified", "Oldest first"]];
const REPLACED = { folder: "path", date: "modified" };  // fields without a menu if the other one has one
const YEAR = /^\d{4}\*$/;
let places = { query: "", fields: new Map() };  // of the last query: its fields, and the filters of each, in the order in which they came

// The menus follow each other; one is open at a time. search: query, literal, filters (field → filter), sort and view of the current
// search; compared rankings have no other order.
// dated: whether documents can be chosen by the date of their last change. change: called with the changes of the search.
// depth: among how many of the best matches documents are counted; null if that is not known.
export async function loadFilters(bar, search, signal, { dated, depth }, change) {
  const given = new URLSearchParams({ query: search.query, literal: search.literal });
  for (const [field, filter] of Object.entries(search.filters)) given.append("filter", `${field}=${filter}`);
  const counted = `Numbers count documents among the ${depth ? `${depth.toLocaleString("en")} ` : ""}best matches, also those that are not shown.`;
  const { facets } = await getJson(`/facets?${given}`, signal).catch(() => ({ facets: [] }));
  if (signal.aborted) return;
  const values = new Map(facets.map(({ field, values, others }) => [field, { values, others }]));
  for (const field of [...(dated ? ["modified"] : []), ...Object.keys(search.filters)]) if (!values.has(field)) values.set(field, { values: [], others: 0 });
  const menus = [...inPlace(`${given.get("literal")} ${search.query}`, values)].filter(([field]) => !values.has(REPLACED[field])).map(([field, found]) =>
    menu(field, panel(field, found, search.filters[field] ?? "", replace => change({ filters: { [field]: replace } })), found.values.length ? counted : ""));
  const order = search.view === "results" && (dated || search.sort) ? [orders(search.sort, sort => change({ sort }))] : [];
  redraw(bar, [...menus, ...order]);
  bar.hidden = !menus.length && !order.length;
}

// Menus and their values stay where they are while the query is the same. A count is undefined if it is not known any more.
function inPlace(query, found) {
  if (query !== places.query) places = { query, fields: new Map() };
  for (const [field, { values }] of found) places.fields.set(field, [...new Set([...(places.fields.get(field) ?? []), ...values.map(([filter]) => filter)])]);
  return new Map([...places.fields].map(([field, filters]) => {
    const { values = [], others = 0 } = found.get(field) ?? {}, counts = new Map(values);
    return [field, { values: filters.map(filter => [filter, counts.get(filter)]), others }];
  }));
}

// Replaces the menus; the open one stays open, with dates that were typed and not applied, and the same control has the focus.
function redraw(bar, items) {
  const open = bar.querySelector("details[open]"), focused = bar.contains(document.activeElement) ? document.activeElement : null;
  const top = open?.lastChild.scrollTop, typed = [...open?.querySelectorAll("[type=date]") ?? []].filter(input => input.value !== input.defaultValue);
  bar.replaceChildren(...items);
  const same = open && bar.querySelector(`[data-field="${CSS.escape(open.dataset.field)}"]`);
  if (same) { same.open = true; same.lastChild.scrollTop = top; }
  for (const { dataset, value } of same ? typed : []) same.querySelector(`[data-key="${dataset.key}"]`).value = value;
  if (focused) (bar.querySelector(`[data-key="${CSS.escape(focused.dataset.key)}"]`) ?? (same ?? bar).querySelector("summary"))?.focus();
}

const menu = (field, content, note) => element("details", { class: "menu", name: "filter", "data-field": field },
  element("summary", { class: "chip", "data-key": `=${field}` }, fieldName(field)), element("div", { class: "panel" }, content, note && element("p", { class: "note" }, note)));

// Values that are taken replace a negated filter, which would negate them as well.
const withoutNegated = taken => taken.length > 1 ? taken.filter(filter => !filter.startsWith("!")) : taken;

function panel(field, { values, others }, current, choose) {
  const chosen = alternatives(current), take = among => choose(now => withoutNegated(among(alternatives(now))).join("|"));
  if (field === "modified" || (values.length && values.every(([filter]) => YEAR.test(filter)))) return datePanel(values.filter(([filter]) => YEAR.test(filter)), current, filter => choose(() => filter));
  const listed = new Set(values.map(([filter]) => filter));
  const all = [...values, ...chosen.filter(filter => !listed.has(filter)).map(filter => [filter])];
  if (field === "path") return folderTree(all.filter(([filter]) => filter.endsWith("/*")), chosen, take);
  return element("ul", {}, ...all.map(([filter, count]) => {
    const box = element("input", { type: "checkbox", "data-key": `${field}=${filter}`, onchange: () => take(now => box.checked ? [...new Set([...now, filter])] : now.filter(one => one !== filter)) });
    box.checked = chosen.includes(filter);
    return element("li", {}, element("label", {}, box, ` ${filterText(filter)} `, element("span", { class: "count" }, count ?? "")));
  }), ...(others ? [element("li", { class: "count" }, `and ${others} more`)] : []));
}

function orders(current, choose) {
  const known = ORDERS.some(([value]) => value === current) ? ORDERS : [...ORDERS, [current, current]];
  return element("select", { class: "chip", "aria-label": "Order", "data-key": "order", onchange: event => choose(event.target.value) },
    ...known.map(([value, label]) => element("option", { value, ...(value === current ? { selected: "" } : {}) }, label)));
}

// A menu closes on Escape, and when something else is pressed or focused.
const closeOthers = target => { for (const open of document.querySelectorAll(".menu[open]")) if (!open.contains(target)) open.open = false; };
for (const kind of ["pointerdown", "focusin"]) addEventListener(kind, event => closeOthers(event.target));
addEventListener("keydown", event => {
  const open = event.key === "Escape" && event.target.closest?.(".menu[open]");
  if (!open) return;
  open.open = false;
  open.querySelector("summary").focus();
});
