// Keeps the cursor where the next number is typed, and nowhere else: Enter leaves the box at once, so that what is typed
// before the server has answered goes into no box, and the next item's box takes the cursor when it is drawn.

const BOXES = "[class*='st-key-form_label_number_'] input";

document.addEventListener(
  "keydown",
  (event) => {
    const box = event.target;
    if (event.key === "Enter" && box instanceof HTMLInputElement && box.matches(BOXES)) setTimeout(() => box.blur());
  },
  true,
);

// Nobody types there: the page, or its main part, where frame.js puts the focus when what had it is taken away.
const nowhere = (at) => at === document.body || at?.matches("[data-testid=stMain]");

export default function ({ data }) {
  let tries = 0;
  const settle = () => {
    const box = data.wanted === null ? null : document.querySelector(`.st-key-${data.wanted} input`);
    if (data.wanted !== null && box === null) {
      tries += 1;
      timer = tries < 40 ? setTimeout(settle, 50) : undefined;
      return;
    }
    for (const one of document.querySelectorAll(BOXES)) one.inputMode = "decimal"; // the keypad of a phone
    const at = document.activeElement;
    if (at !== box && at.matches(BOXES)) at.blur();
    if (box !== null && nowhere(document.activeElement)) box.focus();
  };
  let timer = setTimeout(settle);
  return () => clearTimeout(timer);
}
