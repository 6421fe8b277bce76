// How is it told where a document is from? Its path, or its id, and what is known of its publication.

import { element } from "./dom.js";

// about: the service's settings; with files, a path is a link to the file, by the id of its document.
export function source({ doc_id: id, title, lead, contents, segments, copies, source: fields }, about) {
  const { path, type, modified, authors, journal, year, publish_time: published, doi } = fields;
  const place = path ? path.split("/").join(" › ") : title || lead || contents ? id : "";
  const page = type === "pdf" && segments?.[0]?.page ? `#page=${segments[0].page}` : "";  // viewers open it there
  const file = path && about?.files ? element("a", { href: `/files/${id.split("/").map(encodeURIComponent).join("/")}${page}`, target: "_blank", rel: "noopener", title: "Open the file" }, place) : place;
  return [file, authors, journal, year ?? published, doi, type, modified, copies?.length && `also in ${copies.join(", ")}`].filter(Boolean).map(part => element("span", {}, part));
}
