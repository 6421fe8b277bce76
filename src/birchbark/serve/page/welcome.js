// What is shown before the first search? What is searched, by what, and examples.

import { byId, element } from "./dom.js";
import { modelName } from "./status.js";

// about: the service's settings, from /about. rankers: what ranks, in words.
export function welcome(about, rankers) {
  byId("collection").textContent = about.name;
  const changed = new Date(about.changed).toLocaleDateString("en", { day: "numeric", month: "long", year: "numeric" });
  const models = about.model ? [about.embedding, about.model].filter(Boolean).map(modelName) : [];
  const unread = models.length && about.unread_fields.length ? ` Searched but not read: ${about.unread_fields.join(", ")}.` : "";
  byId("about").textContent = `${about.documents.toLocaleString("en")} documents, last changed on ${changed}; ranked by ${rankers}${models.length ? `, with ${models.join(" and ")}` : ""}.${unread}`;
  for (const one of document.querySelectorAll("#syntax [data-field]")) one.hidden = !about.keywords.includes(one.dataset.field);
  const examples = byId("examples"), shown = JSON.stringify(about.examples);
  if (examples.dataset.shown === shown) return;  // one of them may have the focus
  examples.dataset.shown = shown;
  const links = about.examples.map(text => element("a", { href: `#${new URLSearchParams({ q: text })}` }, text));
  examples.hidden = !links.length;
  examples.replaceChildren("For example: ", ...links.flatMap((link, index) => [index ? " · " : "", link]));
}
