// Visible text with less contrast than WCAG AA asks: 4.5 : 1, or 3 : 1 where it is large.  Run in the page.
() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (front, back) => [0, 1, 2].map((i) => front[i] * front[3] + back[i] * (1 - front[3])).concat(1);
  const light = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((part) => part / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [high, low] = [light(one), light(other)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const upwards = (element) => {
    const chain = [];
    for (let at = element; at; at = at.parentElement) chain.push(at);
    return chain;
  };
  const seen = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const found = new Map();
  const check = (element, text, { color, opacity = 1 }) => {
    const chain = upwards(element);
    let ground = [255, 255, 255, 1];
    for (const at of [...chain].reverse()) ground = over(rgba(getComputedStyle(at).backgroundColor), ground);
    const front = rgba(color);
    front[3] *= Number(opacity);
    for (const at of chain) front[3] *= Number(getComputedStyle(at).opacity);
    const size = parseFloat(getComputedStyle(element).fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(getComputedStyle(element).fontWeight) >= 700);
    const value = ratio(over(front, ground), ground);
    if (value < (large ? 3 : 4.5)) {
      const kind = chain.map((at) => at.dataset?.testid).filter(Boolean)[0] ?? element.tagName;
      const off = chain.some((at) => at.disabled || at.getAttribute?.("aria-disabled") === "true");
      found.set(`${kind}${off ? " off" : ""} ${value.toFixed(2)}: ${text.trim().slice(0, 40)}`, { value, off });
    }
  };
  const skipped = "script, style, noscript, svg, canvas *, [data-testid=stIconMaterial]";
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!/[\p{L}\p{N}]/u.test(node.data) || element.closest(skipped) || !seen(element)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const place = range.getBoundingClientRect();
    if (place.width < 2 || place.height < 2) continue;
    check(element, node.data, { color: getComputedStyle(element).color });
  }
  for (const field of document.querySelectorAll("input[placeholder], textarea[placeholder]")) {
    if (!field.value && seen(field)) check(field, field.placeholder, getComputedStyle(field, "::placeholder"));
  }
  return [...found.keys()].sort();
}
