// Which contrast has each text on the page with what is behind it? [ratio, whether it is highlighted, text] for each.
() => {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 1;
  const paint = canvas.getContext('2d', { willReadFrequently: true });
  const draw = colour => { paint.fillStyle = colour; paint.fillRect(0, 0, 1, 1); };
  const luminance = () => [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3).map(value => value / 255)
    .map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
    .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
  const found = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !node.checkVisibility() || node.closest('noscript, option')) continue;
    const above = [];
    for (let one = node; one; one = one.parentElement) above.unshift(one);
    for (const one of above) draw(getComputedStyle(one).backgroundColor);
    const back = luminance();
    draw(getComputedStyle(node).color);
    const [low, high] = [back, luminance()].sort((a, b) => a - b);
    found.push([(high + 0.05) / (low + 0.05), Boolean(node.closest('mark')), texts.currentNode.data.trim()]);
  }
  return found;
}
