// How are results narrowed and sorted? By choosing, for a field, one of the values that the candidates
// have, and by choosing the newest or oldest of the best first.

import { getJson } from "./api.js";
import { element } from "./dom.js";

const capitalised = name => name[0].toUpperCase() + name.slice(1).replaceAll("_", " ");
const readable = value => value.replace(/\*$/, "");

export function clearFilters(group) {
  group.hidden = true;
  group.replaceChildren();
}

const ORDERS = [["", "best first"], ["-modified", "newest first"], ["modified", "oldest first"]];

// chosen: field → value, of the current search. narrow: called with a field and the value to choose, "" for none.
// sort: the current order; reorder: called with another one. dated: whether hits say when they were modified.
export async function loadFilters(group, { query, literal, filters: chosen, sort }, signal, narrow, { dated, reorder }) {
  const given = new URLSearchParams({ query, literal });
  for (const [field, value] of Object.entries(chosen)) given.append("filter", `${field}=${value}`);
  const { facets } = await getJson(`/facets?${given}`, signal).catch(() => ({ facets: [] }));
  const values = new Map(facets.map(facet => [facet.field, facet]));
  const fields = new Set([...Object.keys(chosen), ...values.keys()]);
  group.replaceChildren(...[...fields].map(field => choice(field, chosen[field], values.get(field) ?? { values: [], others: 0 }, narrow)));
  const sortable = dated || sort;
  if (sortable) group.append(order(sort, reorder));
  group.hidden = !fields.size && !sortable;
}

function order(current, reorder) {
  const known = ORDERS.some(([value]) => value === current) ? ORDERS : [...ORDERS, [current, current]];
  const options = known.map(([value, label]) => element("option", { value, ...(value === current ? { selected: "" } : {}) }, label));
  return element("label", {}, "Order ", element("select", { onchange: event => reorder(event.target.value) }, ...options));
}

function choice(field, current, { values, others }, narrow) {
  const options = values.filter(([value]) => value !== current).map(([value, count]) => element("option", { value }, `${readable(value)} (${count})`));
  const any = element("option", { value: "" }, "any");
  const select = element("select", { onchange: event => narrow(field, event.target.value) }, any,
    ...(current ? [element("option", { value: current, selected: "" }, readable(current))] : []), ...options,
    ...(others ? [element("option", { disabled: "" }, `and ${others} more`)] : []));
  return element("label", {}, `${capitalised(field)} `, select);
}
