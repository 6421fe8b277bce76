// How are results narrowed? By choosing, for a field, one of the values that the candidates have.

import { getJson } from "./api.js";
import { element } from "./dom.js";

const capitalised = name => name[0].toUpperCase() + name.slice(1).replaceAll("_", " ");
const readable = value => value.replace(/\*$/, "");

export function clearFilters(group) {
  group.hidden = true;
  group.replaceChildren();
}

// chosen: field → value, of the current search. narrow: called with a field and the value to choose, "" for none.
export async function loadFilters(group, { query, filters: chosen }, signal, narrow) {
  const given = new URLSearchParams({ query });
  for (const [field, value] of Object.entries(chosen)) given.append("filter", `${field}=${value}`);
  const { facets } = await getJson(`/facets?${given}`, signal).catch(() => ({ facets: [] }));
  const values = new Map(facets.map(facet => [facet.field, facet]));
  const fields = new Set([...Object.keys(chosen), ...values.keys()]);
  group.replaceChildren(...[...fields].map(field => choice(field, chosen[field], values.get(field) ?? { values: [], others: 0 }, narrow)));
  group.hidden = !fields.size;
}

function choice(field, current, { values, others }, narrow) {
  const options = values.filter(([value]) => value !== current).map(([value, count]) => element("option", { value }, `${readable(value)} (${count})`));
  const any = element("option", { value: "" }, "any");
  const select = element("select", { onchange: event => narrow(field, event.target.value) }, any,
    ...(current ? [element("option", { value: current, selected: "" }, readable(current))] : []), ...options,
    ...(others ? [element("option", { disabled: "" }, `and ${others} more`)] : []));
  return element("label", {}, `${capitalised(field)} `, select);
}
