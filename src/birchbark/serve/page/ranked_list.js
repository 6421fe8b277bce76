// How does a ranked list change without losing the focus, or a click on one of its items?

let pressed = false;  // lists do not change while one is being pressed
const pending = new Map();  // element → how it is drawn afterwards
addEventListener("pointerdown", event => { pressed = event.button === 0 && Boolean(event.target.closest?.("#hits, #compare ol")); });
for (const kind of ["pointerup", "pointercancel", "contextmenu", "dragend", "blur"]) addEventListener(kind, () => setTimeout(() => {  // after the click
  pressed = false;
  const draws = [...pending.values()];
  pending.clear();
  for (const draw of draws) draw();
}));

// Draws an element, once no list is being pressed.
export function drawUnpressed(element, draw) {
  if (pressed) pending.set(element, draw);
  else draw();
}

// Forgets what was to be drawn.
export function forgetDrawings() {
  pressed = false;
  pending.clear();
}

// Puts exactly these items into the list, in this order; those that it has already stay, and keep the focus.
export function arrange(list, items) {
  const focused = document.activeElement, before = [...list.children];
  let next = list.firstElementChild;
  for (const item of items) {
    if (item === next) next = next.nextElementSibling;
    else list.insertBefore(item, next);
  }
  for (const item of before) if (!items.includes(item)) item.remove();
  if (focused !== document.activeElement && list.contains(focused)) focused.focus({ preventScroll: true });
}
