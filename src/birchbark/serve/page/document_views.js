// How are the contents of a document shown: as plain text, or formatted, as people know documents of their type?

import { element } from "./dom.js";
import { countCharacters } from "./marks.js";

const PIECE = 20_000;  // characters of plain text in one element, about; the browser lays out those that are in view
const PEOPLE = ["from", "to", "cc"];
const ADDRESS = /\bhttps?:\/\/[^\s<>"']*[^\s<>"'.,;:!?)\]]/g;
const PAGE_BREAK = "\f";

// Each of the following returns nodes, and the runs of characters of the contents in them (see findShown).

export function plainView({ contents }) {
  return { kind: "plain", nodes: pieces(contents), runs: whole(0, contents) };
}

// rendered: of the service; null for documents that it does not render. null for documents that are shown as plain text.
export function formattedView(document, rendered, settings, addressOf) {
  if (rendered?.markup) return renderedView(document, rendered, addressOf);
  if (document.fields.type === "email") return mailView(document);
  return document.contents.includes(PAGE_BREAK) ? pageView(document, settings) : null;
}

// The title stands above the document.
const titleLength = ({ title, contents }) => title && contents.startsWith(`${title}\n`) ? title.length + 1 : 0;
const split = document => [document.contents.slice(0, titleLength(document)), document.contents.slice(titleLength(document))];
const characters = text => countCharacters(text).bare.length;
const whole = (start, text) => [[0, start, characters(text)]];

function pieces(text) {
  const nodes = [];
  for (let start = 0; start < text.length;) {
    const end = text.indexOf("\n", start + PIECE) + 1 || text.length;
    nodes.push(element("div", {}, text.slice(start, end)));
    start = end;
  }
  return nodes;
}

function renderedView(document, { markup, runs, links }, addressOf) {
  const parsed = new DOMParser().parseFromString(markup, "text/html").body;  // runs and loads nothing; and sanitised
  for (const link of parsed.querySelectorAll("a[href]")) {
    const href = link.getAttribute("href"), target = href.startsWith("#link-") ? links[href.slice(6)] : null;
    if (target) link.href = addressOf(target);
    else if (href.startsWith("#link-")) link.removeAttribute("href");
    else if (!href.startsWith("#")) link.target = "_blank";
  }
  for (const closed of parsed.querySelectorAll("details")) closed.open = true;
  for (const table of parsed.querySelectorAll("table")) { const box = element("div", { class: "wide" }); table.replaceWith(box); box.append(table); }
  const title = characters(split(document)[0]);
  return { kind: "rendered", nodes: [...parsed.childNodes], runs: runs.map(([at, start, length]) => [at, title + start, length]) };
}

function pageView(document, settings) {
  const [title, text] = split(document), { path, type } = document.fields;
  const file = type === "pdf" && settings.files && path?.toLowerCase().endsWith(".pdf") && `/files/${document.doc_id.split("/").map(encodeURIComponent).join("/")}`;
  const nodes = text.split(PAGE_BREAK).map((page, index) => {
    const name = `Page ${(index + 1).toLocaleString("en")}`;
    const heading = file ? element("a", { href: `${file}#page=${index + 1}`, target: "_blank", rel: "noopener", title: "Open the file at this page" }, name) : name;
    return element("section", {}, element("h3", { class: "beside" }, heading), page.trim());
  });
  return { kind: "pages", nodes, runs: whole(characters(title), text) };
}

function mailView(document) {
  const [title, text] = split(document), { fields } = document;
  const lines = PEOPLE.filter(name => fields[name]).map(name => [`${name[0].toUpperCase()}${name.slice(1)}:`, fields[name]]);
  const head = lines.map(([name, value]) => `${name} ${value}`).join("\n"), begins = text.startsWith(head);  // the text begins with who wrote it
  const rows = lines.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]);
  const beside = [["Date:", fields.date && shownDate(fields.date)], ["Subject:", document.title]].filter(([, value]) => value);
  const list = element("dl", begins ? {} : { class: "beside" }, ...rows, ...beside.flatMap(([name, value]) => [element("dt", { class: "beside" }, name), element("dd", { class: "beside" }, value)]));
  const parts = [];  // quoted lines, and those between them
  for (const line of text.slice(begins ? head.length : 0).trim().split("\n")) {
    const quoted = line.startsWith(">");
    if (parts.at(-1)?.quoted !== quoted) parts.push({ quoted, lines: [] });
    parts.at(-1).lines.push(line);
  }
  const body = parts.map(({ quoted, lines }) => element("div", quoted ? { class: "quoted" } : {}, ...linked(lines.join("\n"))));
  return { kind: "mail", nodes: [list, ...body], runs: whole(characters(title), text) };
}

function shownDate(date) {
  const sent = new Date(date);
  return isNaN(sent) ? date : sent.toLocaleString(undefined, { dateStyle: "full", timeStyle: "short" });
}

function linked(text) {
  const nodes = [];
  let position = 0;
  for (const { 0: address, index } of text.matchAll(ADDRESS)) {
    nodes.push(text.slice(position, index), element("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, address));
    position = index + address.length;
  }
  return [...nodes, text.slice(position)];
}
