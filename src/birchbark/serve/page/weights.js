// Which weights has the user chosen? Sliders for the first stage's, and for those of the best passages.

import { element } from "./dom.js";

const byId = name => document.getElementById(name);
const DELAY = 60;  // milliseconds from a slider's last movement to the search
let about = null, changed = false, search = null, timer = 0;

// settings: the service's, from /about. onChange: called to search again.
export function showWeights(settings, onChange) {
  [about, search] = [settings, onChange];
  byId("weights").hidden = false;
  reset();
}

// The fields of a request: none for the service's own weights.
export function chosenWeights() {
  if (!changed) return {};
  const weights = [...byId("segment-weights").querySelectorAll("input")].map(input => Number(input.value));
  return { first_stage_weight: Number(byId("a").value), ...(about.weights ? { weights } : {}) };
}

function draw() {
  byId("a-value").textContent = Number(byId("a").value).toFixed(2);
  byId("n-value").textContent = byId("n").value;
  const count = about.weights ? Number(byId("n").value) : 0, sliders = byId("segment-weights");
  while (sliders.children.length > count) sliders.lastChild.remove();
  while (sliders.children.length < count) {
    const rank = sliders.children.length + 1, weight = about.weights[rank - 1] ?? 1 / 2 ** (rank - 1);
    const value = element("span", { class: "value", "aria-hidden": "true" });  // an <output> would take the label from the slider
    sliders.append(element("label", {}, `Weight of passage ${rank} `, value,
      element("input", { type: "range", min: 0, max: 1, step: 0.01, value: weight, oninput: onInput })));
  }
  for (const label of sliders.children) label.querySelector(".value").textContent = Number(label.querySelector("input").value).toFixed(2);
}

function onInput() {
  changed = true;
  draw();
  clearTimeout(timer);
  timer = setTimeout(search, DELAY);
}

function reset() {
  const { first_stage_weight: a, weights } = about;
  changed = false;
  byId("a").value = a;
  byId("n").max = Math.max(5, weights?.length ?? 1);
  byId("n").value = weights?.length ?? 1;
  byId("n").closest("label").hidden = !weights;
  byId("segment-weights").replaceChildren();
  draw();
}

for (const name of ["a", "n"]) byId(name).addEventListener("input", onInput);
byId("reset").addEventListener("click", () => { reset(); search(); });
