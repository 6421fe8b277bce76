// Which weights has the user chosen? Sliders for the first stage's, and for those of the best passages.

import { byId, element } from "./dom.js";

const DELAY = 60;  // milliseconds from a slider's last movement to the search
let about = null, chosen = {}, search = null, timer = 0;  // chosen: the fields of a request

// settings: the service's, from /about. onChange: called to search again.
export function showWeights(settings, onChange) {
  [about, search] = [settings, onChange];
  byId("weights").hidden = false;
  reset();
}

// The fields of a request: those of the weights that were moved. A slider rounds, so others are the service's own.
export function chosenWeights() {
  return chosen;
}

function draw() {
  byId("a-value").textContent = Number(byId("a").value).toFixed(2);
  byId("n-value").textContent = byId("n").value;
  const weights = chosen.weights ?? about.weights ?? [], sliders = byId("segment-weights");
  while (sliders.children.length > weights.length) sliders.lastChild.remove();
  while (sliders.children.length < weights.length) {
    const place = sliders.children.length;
    const value = element("span", { class: "value", "aria-hidden": "true" });  // an <output> would take the label from the slider
    const slider = element("input", { type: "range", min: 0, max: Math.max(1, ...about.weights), step: 0.01, value: weights[place],
      oninput: () => choose({ weights: (chosen.weights ?? about.weights).with(place, Number(slider.value)) }) });
    sliders.append(element("label", {}, `Weight of passage ${place + 1} `, value, slider));
  }
  weights.forEach((weight, place) => { sliders.children[place].querySelector(".value").textContent = weight.toFixed(2); });
}

function chooseCount() {
  const weights = chosen.weights ?? about.weights;
  choose({ weights: Array.from({ length: Number(byId("n").value) }, (_, place) => weights[place] ?? about.weights[place] ?? 1 / 2 ** place) });
}

function choose(fields) {
  Object.assign(chosen, fields);
  draw();
  clearTimeout(timer);
  timer = setTimeout(search, DELAY);
}

function reset() {
  const { first_stage_weight: a, weights } = about;
  chosen = {};
  byId("a").value = a;
  byId("n").max = Math.max(5, weights?.length ?? 1);
  byId("n").value = weights?.length ?? 1;
  byId("n").closest("label").hidden = !weights;
  byId("segment-weights").replaceChildren();
  draw();
}

byId("a").addEventListener("input", () => choose({ first_stage_weight: Number(byId("a").value) }));
byId("n").addEventListener("input", chooseCount);
byId("reset").addEventListener("click", () => { reset(); search(); });
