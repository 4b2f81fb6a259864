// Keys of Misaligned that no button of Streamlit's can have (J, K, ?), and the focus: a press draws the next item's
// buttons anew, and the focus stays on the button that took their place, so that no key is ever dead.

const BAR = "[class*='st-key-form_misaligned_bar']";
const NOTE = "[class*='st-key-form_misaligned_note'] input";
const PRESSES = { j: "next", k: "previous", "?": "keys" };
let held = null; // {place, words} of the button that had the focus last

const buttons = () => [...document.querySelectorAll(`${BAR} button`)];
const typing = (at) => at instanceof HTMLElement && (at.isContentEditable || at.matches("textarea, select, input"));

// The page takes the focus (frame.js) where the button that had it is gone.
const nowhere = (at) => at === document.body || at.matches("[data-testid=stMain]");

document.addEventListener(
  "keydown",
  (event) => {
    const note = event.target instanceof HTMLElement && event.target.matches(NOTE) ? event.target : null;
    if (note && (event.key === "Enter" || event.key === "Escape")) setTimeout(() => note.blur());
    if (event.key.toLowerCase() === "n" && !event.ctrlKey && !event.metaKey && !event.altKey && !typing(event.target)) {
      const empty = document.querySelector(NOTE);
      if (empty) { event.preventDefault(); empty.focus(); }
    }
    const name = PRESSES[event.key.toLowerCase()];
    if (!name || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    const button = document.querySelector(`${BAR} [class*='st-key-form_misaligned_${name}'] button`);
    if (button === null || button.disabled) return;
    event.preventDefault();
    button.click();
  },
  true,
);

document.addEventListener("focusin", (event) => {
  const place = buttons().indexOf(event.target);
  if (place >= 0) held = { place, words: event.target.textContent };
  else if (!nowhere(event.target)) held = null;
});

export default function () {
  const settle = () => {
    if (held === null) return;
    const button = buttons().find((drawn) => drawn.textContent === held.words) ?? buttons()[held.place];
    if (button && !button.disabled && nowhere(document.activeElement)) button.focus({ preventScroll: true });
  };
  const timers = [setTimeout(settle), setTimeout(settle, 120)];
  return () => timers.forEach(clearTimeout);
}
