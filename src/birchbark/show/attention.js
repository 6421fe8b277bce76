"use strict";
// Draws what tokens look at: buttons in .layers and .heads, lines in .lines, squares in .map, all
// within root. data: see attention_data in attention.py. Called again, it draws anew.
function drawAttention(data, root) {
  const SVG = "http://www.w3.org/2000/svg", LINE = 19, LEFT = 170, RIGHT = 430, LEAST = 0.02;
  const shares = data.layers.map(layer => Uint8Array.from(atob(layer.values), c => c.charCodeAt(0)));
  const n = data.tokens.length, state = { layer: 0, head: -1, row: -1 };
  const place = name => root.querySelector("." + name);
  const at = (layer, head, row, column) => {
    const { heads, rows } = data.layers[layer], values = shares[layer];
    if (head >= 0) return values[(head * rows + row) * n + column] / 255;
    let sum = 0;
    for (let h = 0; h < heads; h++) sum += values[(h * rows + row) * n + column];
    return sum / heads / 255;
  };
  const element = (name, values, text) => {
    const one = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(values)) one.setAttribute(key, value);
    if (text !== undefined) one.textContent = text;
    return one;
  };
  const button = (text, press) => {
    const one = document.createElement("button");
    one.type = "button";
    one.textContent = text;
    one.onclick = () => { press(); draw(); };
    return one;
  };
  function choices(name, label, names, key, values) {
    const title = document.createElement("span");
    title.textContent = label;
    place(name).replaceChildren(title, ...names.map((text, number) => {
      const one = button(text, () => { state[key] = values[number]; });
      one.dataset.value = values[number];
      return one;
    }));
  }
  function heard(row) {
    const shares = data.tokens.map((token, c) => [token, at(state.layer, state.head, row, c)]);
    const best = shares.sort((a, b) => b[1] - a[1]).slice(0, 3);
    return `${data.tokens[row]} looks at ${best.map(([token, share]) => `${token} ${Math.round(100 * share)} %`).join(", ")}`;
  }
  function draw() {
    for (const [name, key] of [["layers", "layer"], ["heads", "head"]])
      for (const one of place(name).querySelectorAll("button"))
        one.setAttribute("aria-pressed", Number(one.dataset.value) === state[key]);
    for (const one of place("map").children)
      one.setAttribute("aria-pressed", Number(one.dataset.layer) === state.layer && Number(one.dataset.head) === state.head);
    const rows = data.layers[state.layer].rows;
    if (state.row >= rows) state.row = -1;
    const svg = element("svg", { viewBox: `0 0 600 ${n * LINE + 8}`, width: 600, role: "group", "aria-label": "Lines from tokens to the tokens that they look at" });
    for (let r = 0; r < rows; r++) {
      if (state.row >= 0 && r !== state.row) continue;
      for (let c = 0; c < n; c++) {
        const share = at(state.layer, state.head, r, c);
        if (share < LEAST) continue;
        const line = element("line", { x1: LEFT + 6, x2: RIGHT - 6, y1: r * LINE + 13, y2: c * LINE + 13, "stroke-opacity": share.toFixed(2), "stroke-width": 1.6 });
        line.style.stroke = `var(--series-${data.sides[r] === "query" ? 1 : data.sides[r] === "text" ? 2 : 4})`;
        svg.append(line);
      }
    }
    data.tokens.forEach((token, number) => {
      const looks = number < rows, off = !looks || (state.row >= 0 && state.row !== number);
      const left = element("text", { x: LEFT, y: number * LINE + 17, "text-anchor": "end", class: data.sides[number] + (off ? " off" : ""), tabindex: looks ? 0 : -1, ...(looks ? { role: "img", "aria-label": heard(number) } : {}) }, token);
      const alone = () => { if (state.row !== number) { state.row = number; draw(); return true; } return false; };
      if (looks) {
        left.addEventListener("mouseenter", alone);
        left.addEventListener("focus", () => { if (alone()) place("lines").querySelectorAll("text[tabindex='0']")[number].focus(); });
      }
      svg.append(left, element("text", { x: RIGHT, y: number * LINE + 17, class: data.sides[number] }, token));
    });
    svg.addEventListener("mouseleave", () => { if (state.row >= 0) { state.row = -1; draw(); } });
    place("lines").replaceChildren(svg);
  }
  function thumbnails() {
    const map = place("map"), ink = getComputedStyle(document.body).color.match(/\d+/g).map(Number);
    map.style.gridTemplateColumns = `repeat(${data.layers[0].heads}, max-content)`;
    map.replaceChildren();
    data.layers.forEach((layer, l) => {
      for (let h = 0; h < layer.heads; h++) {
        const canvas = document.createElement("canvas"), one = button("", () => Object.assign(state, { layer: l, head: h }));
        canvas.width = n; canvas.height = layer.rows;
        const context = canvas.getContext("2d"), image = context.createImageData(n, layer.rows);
        for (let i = 0; i < n * layer.rows; i++)
          image.data.set([ink[0], ink[1], ink[2], Math.min(255, 3 * shares[l][h * layer.rows * n + i])], 4 * i);
        context.putImageData(image, 0, 0);
        one.dataset.layer = l; one.dataset.head = h;
        one.setAttribute("aria-label", `layer ${l + 1}, head ${h + 1}`);
        one.append(canvas);
        map.append(one);
      }
    });
  }
  const heads = Array.from({ length: data.layers[0].heads }, (_, h) => h);
  choices("layers", "layer", data.layers.map((_, l) => l + 1), "layer", data.layers.map((_, l) => l));
  choices("heads", "head", ["all", ...heads.map(h => h + 1)], "head", [-1, ...heads]);
  thumbnails();
  draw();
}
