// How are filters written for people? The service's syntax is described in retrieve/filters.py.

const NAMES = { path: "Folder", folder: "Folder", modified: "Date" };
const PART = /"(?:[^"]|"")*"\*?(?=\||$)|[^|]+/g;
const DAY = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });

export const fieldName = name => NAMES[name] ?? name[0].toUpperCase() + name.slice(1).replaceAll("_", " ");

// The filters of which a filter allows any; a negated one is a single filter.
export const alternatives = filter => filter.startsWith("!") ? [filter] : filter.match(PART) ?? [];

export function filterText(filter) {
  if (filter.startsWith("!")) return `not ${alternatives(filter.slice(1)).map(filterText).join(" or ")}`;
  if (filter.startsWith('"')) return filter.replace(/\*$/, "").slice(1, -1).replaceAll('""', '"');
  const range = filter.match(/^(.*?)\.\.(.*)$/);
  if (!range) return filter.replace(/\/?\*$/, "");
  const [from, to] = range.slice(1).map(dateText);
  return from && to ? `${from} to ${to}` : from ? `since ${from}` : `until ${to}`;
}

const dateText = text => /^\d{4}-\d\d-\d\d$/.test(text) && !isNaN(Date.parse(text)) ? DAY.format(Date.parse(text)) : text;
