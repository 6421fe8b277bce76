// How is it told where a document is from? Its path, or its id, and what is known of its publication.

import { element } from "./dom.js";

const WORDS = 8;  // of the evidence, for which the browser looks in the file

// Shows it in an element, whose link keeps the focus. about: the service's settings; with files, a path is a link to the file, by the
// id of its document.
export function showSource(line, hit, about) {
  const drawn = line.cloneNode(), focused = line.contains(document.activeElement);
  drawn.append(...source(hit, about));
  if (drawn.isEqualNode(line)) return;
  line.replaceChildren(...drawn.childNodes);
  if (focused) line.querySelector("a")?.focus();
}

function source({ doc_id: id, title, lead, contents, segments, snippet, copies, source: fields }, about) {
  const { path, type, modified, authors, journal, year, publish_time: published, doi } = fields;
  const place = path ? path.split("/").join(" › ") : title || lead || contents ? id : "";
  const evidence = segments?.[0] ?? snippet, address = `/files/${id.split("/").map(encodeURIComponent).join("/")}${evidence ? fragment(type, evidence) : ""}`;
  const file = path && about?.files ? element("a", { href: address, target: "_blank", rel: "noopener", title: "Open the file" }, place) : place;
  return [file, authors, journal, year ?? published, doi, type, modified, copies?.length && `also in ${copies.join(", ")}`].filter(Boolean).map(part => element("span", {}, part));
}

// Where a browser opens a file: at the page of its evidence, or of a web page at its words, if it finds them.
function fragment(type, { text, start, end, sentence, page }) {
  if (type === "pdf") return page ? `#page=${page}` : "";
  if (type !== "html") return "";
  const shown = Array.from(text).slice(...(sentence ?? [start - end])).join("");
  const words = shown.trim().split(/\s+/).slice(0, WORDS).join(" ");
  return words ? `#:~:text=${encodeURIComponent(words).replaceAll("-", "%2D")}` : "";
}
