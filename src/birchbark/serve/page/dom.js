// How are elements created? Text becomes text nodes, never HTML.

const MAX_TITLE = 80;  // characters

export const byId = name => document.getElementById(name);

export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "share") node.style.setProperty("--share", value.toFixed(3));
    else if (key === "width") node.style.width = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

// Text for screen readers only.
export const visuallyHidden = text => element("span", { class: "visually-hidden" }, text);

export const formatScore = x => {
  const text = Math.abs(x).toFixed(3).replace(/^0\./, ".");
  return x < 0 ? `−${text}` : text;
};
// The title; without one the first line, if it reads like a text, else the file's name.
export const title = hit => hit.title || (hit.source?.path && !readable(hit.lead) ? hit.source.path.split("/").at(-1) : beginning(hit.lead.trim())) || hit.doc_id;

// Whether a first line has three words: not "#!/bin/sh" or ".. note::".
const readable = text => (beginning(text.trim()).match(/\p{L}{2,}/gu) ?? []).length > 2;

// The first line of a text, or its beginning.
export function beginning(text) {
  const line = text.split("\n", 1)[0].trim();
  if (line.length <= MAX_TITLE) return line;
  const end = line.lastIndexOf(" ", MAX_TITLE);
  return `${line.slice(0, end > 0 ? end : MAX_TITLE)} …`;
}
