// How are folders chosen? From a tree, in which a folder is taken with all that is in it.

import { element } from "./dom.js";
import { filterText } from "./filter_text.js";

const expanded = new Set();  // filters of the folders whose subfolders are shown

// values: filter (FOLDER/*) and number of documents of each folder. chosen: the filters of those that are taken.
// choose: called with a function from the filters that are taken to those to take instead.
export function folderTree(values, chosen, choose) {
  const inside = (filter, folder) => filter !== folder && filter.startsWith(folder.slice(0, -1));
  const known = values.map(([filter]) => filter).sort();
  const parent = filter => known.filter(other => inside(filter, other)).sort((a, b) => a.length - b.length).at(-1);
  const counts = new Map(values);
  const branch = above => element("ul", {}, ...known.filter(filter => parent(filter) === above).map(node));
  return branch(undefined);

  function node(filter) {
    const subfolders = known.some(other => parent(other) === filter), above = parent(filter);
    const name = filterText(above ? filter.slice(above.length - 1) : filter), whole = chosen.some(other => inside(filter, other));
    const box = element("input", { type: "checkbox", "data-key": filter, onchange: toggle, ...(whole ? { disabled: "" } : {}) });
    box.checked = whole || chosen.includes(filter);
    box.indeterminate = !box.checked && chosen.some(other => inside(other, filter));
    const item = element("li", {}, element("label", {}, box, ` ${name} `, element("span", { class: "count" }, counts.get(filter) ?? "")));
    if (!subfolders) return item;
    const list = branch(filter), open = expanded.has(filter) || box.indeterminate;
    const button = element("button", { type: "button", class: "expand", "data-key": `+${filter}`, "aria-label": `Folders in ${name}`, "aria-expanded": open, onclick: expand });
    list.hidden = !open;
    item.prepend(button);
    item.append(list);
    return item;

    function toggle() {
      choose(now => box.checked ? [...new Set([...now.map(other => inside(other, filter) ? filter : other), filter])] : now.filter(other => other !== filter));
    }
    function expand() {
      list.hidden = !list.hidden;
      button.setAttribute("aria-expanded", !list.hidden);
      if (list.hidden) expanded.delete(filter);
      else expanded.add(filter);
    }
  }
}
