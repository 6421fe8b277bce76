// How are elements made? Texts go in as text, never as HTML.

export function made(name, values = {}, ...children) {
  const one = document.createElement(name);
  for (const [key, value] of Object.entries(values)) {
    if (key === "share") one.style.setProperty("--share", value.toFixed(3));
    else if (key === "width") one.style.width = value;
    else if (key.startsWith("on")) one.addEventListener(key.slice(2), value);
    else if (value !== undefined) one.setAttribute(key, value);
  }
  one.append(...children);
  return one;
}

// What is heard and not seen.
export const unseen = text => made("span", { class: "unseen" }, text);

export const figure = x => {
  const text = Math.abs(x).toFixed(3).replace(/^0\./, ".");
  return x < 0 ? `−${text}` : text;
};
export const named = hit => hit.title || hit.lead.slice(0, 80) || hit.doc_id;
