// How are dates chosen? As a recent period, a year, or from one day to another.

import { element } from "./dom.js";
import { filterText } from "./filter_text.js";

const DAYS = [["Past week", 7], ["Past month", 30], ["Past year", 365]];
const DAY = 86_400_000;  // milliseconds
const RANGE = /^(\d{4}-\d\d-\d\d)?\.\.(\d{4}-\d\d-\d\d)?$/;

// years: filter and number of documents of each year. current: the filter, "" for none. choose: called with another one.
export function datePanel(years, current, choose) {
  const ago = days => `${new Date(Date.now() - days * DAY).toISOString().slice(0, 10)}..`;
  const recent = DAYS.map(([name, days]) => [name, ago(days)]);
  const listed = years.toSorted(([a], [b]) => a < b ? 1 : -1).map(([filter, count]) => [filterText(filter), filter, count]);
  const [first, last] = ["from", "to"].map(name => element("input", { type: "date", "data-key": name }));
  const show = filter => [first, last].forEach((field, end) => { field.defaultValue = field.value = filter.match(RANGE)?.[end + 1] ?? ""; });
  show(current);
  const apply = event => {
    event.preventDefault();
    const [low, high] = first.value && last.value ? [first.value, last.value].sort() : [first.value, last.value];
    take(low || high ? `${low}..${high}` : "");
  };
  const take = filter => {
    show(filter);  // at once: what is typed before the menus are drawn again is a change of it
    choose(filter);
  };
  return element("div", {},
    element("p", { class: "periods" }, ...[["Any time", ""], ...recent, ...listed].map(([name, filter, count]) =>
      element("button", { type: "button", class: "chip", "data-key": name, "aria-pressed": filter === current, onclick: () => take(filter) },
        name, count ? element("span", { class: "count" }, ` ${count}`) : ""))),
    element("form", { class: "range", onsubmit: apply }, element("label", {}, "From ", first), element("label", {}, "To ", last), element("button", { "data-key": "apply" }, "Apply")));
}
