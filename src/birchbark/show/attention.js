// How is a model's attention drawn on a page?
"use strict";
// Draws it within root: buttons in .layers and .heads, lines in .lines, squares in .map.
// data: see attention_data in attention_page.py. A second call replaces the first drawing.
function drawAttention(data, root) {
  const SVG = "http://www.w3.org/2000/svg", LINE = 19, LEFT = 170, RIGHT = 430, LEAST = 0.02;
  const shares = data.layers.map(layer => Uint8Array.from(atob(layer.values), c => c.charCodeAt(0)));
  const n = data.tokens.length, state = { layer: 0, head: -1, row: -1 };
  const part = name => root.querySelector("." + name);
  const at = (layer, head, row, column) => {
    const { heads, rows } = data.layers[layer], values = shares[layer];
    if (head >= 0) return values[(head * rows + row) * n + column] / 255;
    let sum = 0;
    for (let h = 0; h < heads; h++) sum += values[(h * rows + row) * n + column];
    return sum / heads / 255;
  };
  const element = (name, values, text) => {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(values)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const button = (text, press) => {
    const node = document.createElement("button");
    node.type = "button";
    node.textContent = text;
    node.onclick = () => { press(); draw(); };
    return node;
  };
  function choices(name, label, names, key, values) {
    const title = document.createElement("span");
    title.textContent = label;
    part(name).replaceChildren(title, ...names.map((text, number) => {
      const node = button(text, () => { state[key] = values[number]; });
      node.dataset.value = values[number];
      return node;
    }));
  }
  function describe(row) {
    const shares = data.tokens.map((token, c) => [token, at(state.layer, state.head, row, c)]);
    const best = shares.sort((a, b) => b[1] - a[1]).slice(0, 3);
    return `${data.tokens[row]} attends most to ${best.map(([token, share]) => `${token} ${Math.round(100 * share)} %`).join(", ")}`;
  }
  function draw() {
    for (const [name, key] of [["layers", "layer"], ["heads", "head"]])
      for (const node of part(name).querySelectorAll("button"))
        node.setAttribute("aria-pressed", Number(node.dataset.value) === state[key]);
    for (const node of part("map").children)
      node.setAttribute("aria-pressed", Number(node.dataset.layer) === state.layer && Number(node.dataset.head) === state.head);
    const rows = data.layers[state.layer].rows;
    if (state.row >= rows) state.row = -1;
    const svg = element("svg", { viewBox: `0 0 600 ${n * LINE + 8}`, width: 600, role: "group", "aria-label": "Lines from tokens to the tokens that they attend to" });
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
      const attends = number < rows, off = !attends || (state.row >= 0 && state.row !== number);
      const left = element("text", { x: LEFT, y: number * LINE + 17, "text-anchor": "end", class: data.sides[number] + (off ? " off" : ""), tabindex: attends ? 0 : -1, ...(attends ? { role: "img", "aria-label": describe(number) } : {}) }, token);
      const select = () => { if (state.row !== number) { state.row = number; draw(); return true; } return false; };
      if (attends) {
        left.addEventListener("mouseenter", select);
        left.addEventListener("focus", () => { if (select()) part("lines").querySelectorAll("text[tabindex='0']")[number].focus(); });
      }
      svg.append(left, element("text", { x: RIGHT, y: number * LINE + 17, class: data.sides[number] }, token));
    });
    svg.addEventListener("mouseleave", () => { if (state.row >= 0) { state.row = -1; draw(); } });
    part("lines").replaceChildren(svg);
  }
  function thumbnails() {
    const map = part("map"), ink = getComputedStyle(document.body).color.match(/\d+/g).map(Number);
    map.style.gridTemplateColumns = `repeat(${data.layers[0].heads}, max-content)`;
    map.replaceChildren();
    data.layers.forEach((layer, l) => {
      for (let h = 0; h < layer.heads; h++) {
        const canvas = document.createElement("canvas"), node = button("", () => Object.assign(state, { layer: l, head: h }));
        canvas.width = n; canvas.height = layer.rows;
        const context = canvas.getContext("2d"), image = context.createImageData(n, layer.rows);
        for (let i = 0; i < n * layer.rows; i++)
          image.data.set([ink[0], ink[1], ink[2], Math.min(255, 3 * shares[l][h * layer.rows * n + i])], 4 * i);
        context.putImageData(image, 0, 0);
        node.dataset.layer = l; node.dataset.head = h;
        node.setAttribute("aria-label", `layer ${l + 1}, head ${h + 1}`);
        node.append(canvas);
        map.append(node);
      }
    });
  }
  // The head whose query tokens attend most to the text, and the reverse: a beginning that says something.
  function mostTelling() {
    let best = { layer: 0, head: -1, share: 0 };
    data.layers.forEach(({ heads, rows }, layer) => {
      for (let head = 0; head < heads && rows > 1; head++) {
        let share = 0;
        for (let r = 0; r < rows; r++)
          for (let c = 0; c < n; c++)
            if ((data.sides[r] === "query" && data.sides[c] === "text") || (data.sides[r] === "text" && data.sides[c] === "query")) share += shares[layer][(head * rows + r) * n + c];
        if (share > best.share) best = { layer, head, share };
      }
    });
    return best;
  }
  const heads = Array.from({ length: data.layers[0].heads }, (_, h) => h);
  choices("layers", "layer", data.layers.map((_, l) => l + 1), "layer", data.layers.map((_, l) => l));
  choices("heads", "head", ["all", ...heads.map(h => h + 1)], "head", [-1, ...heads]);
  const { layer, head } = mostTelling();
  Object.assign(state, { layer, head });
  thumbnails();
  draw();
}
