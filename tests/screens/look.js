// What a person sees of a screen: words in letters only, from text that has a place on the page.  Run in the page.
() => {
  const main = document.querySelector("[data-testid=stMain]");
  const fold = 900 - main.getBoundingClientRect().y;
  const top = main.scrollTop - main.getBoundingClientRect().y;
  const seen = (element) =>
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true });
  const words = (text) => (text.match(/[\p{L}\p{N}'’.+−-]*\p{L}[\p{L}\p{N}'’.+−-]*/gu) ?? []).length;
  const cells = ".concord-grid td, canvas[data-testid=data-grid-canvas] td"; // counted apart
  const skipped = `[data-testid=stIconMaterial], script, style, canvas *, [aria-hidden=true], ${cells}`;
  const judged = "[data-testid=stText], .st-key-judged, p:has(.stMarkdownColoredBackground)"; // texts, criteria, changes
  let first = 0, whole = 0, own = 0;
  const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const count = words(node.data);
    if (!count || node.parentElement.closest(skipped) || !seen(node.parentElement)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const place = range.getBoundingClientRect();
    if (place.width < 2 || place.height < 2) continue;
    whole += count;
    if (place.y + top >= fold) continue;
    first += count;
    if (!node.parentElement.closest(judged)) own += count;
  }
  const inTables = [...main.querySelectorAll(cells)]
    .reduce((sum, cell) => sum + words(cell.textContent), 0);
  const placeOf = (selector, after = 0) => {
    const tops = [...main.querySelectorAll(selector)].filter(seen).map((one) => one.getBoundingClientRect())
      .filter((place) => place.height > 30 && place.y + top >= after).map((place) => place.y + top);
    return tops.length ? Math.round(Math.min(...tops)) : null;
  };
  const finding = placeOf(".st-key-finding");
  const shown = "stPlotlyChart stImage stDataFrame stTable stText stCode stVegaLiteChart stImageContainer"
    .split(" ").map((id) => `[data-testid=${id}]`).concat(".concord-grid").join(", ");
  const headline = main.querySelector(".st-key-finding h2")?.textContent ?? "";
  const tabs = [...main.querySelectorAll("[data-testid=stButtonGroup], [role=tablist]")].filter(seen)
    .map((one) => one.querySelectorAll("button").length);
  return {
    own, headline: words(headline), numbers: (headline.match(/\d[\d.,]*/g) ?? []).length, tabs: Math.max(0, ...tabs),
    first, whole, cells: inTables, finding, shown: placeOf(shown, finding ?? 0),
    height: Math.round(main.querySelector("[data-testid=stMainBlockContainer]").getBoundingClientRect().height),
    levels: [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].filter(seen)
      .filter((one) => main.contains(one)).map((one) => Number(one.tagName[1])),
  };
}
