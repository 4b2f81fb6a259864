// Keys of the labelling desk that Streamlit's own shortcuts cannot be.
//
// Streamlit calls the function below anew whenever `data` changes, and what it returned last when the element goes.

const DESK = ".st-key-form_label_desk";
const FIELDS = "input:not([type=checkbox]):not([type=radio]), textarea";
const NUMBER = "[class*='st-key-form_label_number_']";
const named = (key) => document.querySelector(`.st-key-${key.trim().replaceAll(/[^a-zA-Z0-9_-]/g, "-")} button`);
let off = null; // ends what the call before has begun: that of another item

export default function ({ data, parentElement }) {
  off?.abort();
  const own = (off = new AbortController());
  const on = (where, what, act) => where.addEventListener(what, act, { capture: true, signal: own.signal });

  // A switch that was pressed would keep the focus, and no key works from within a field.
  on(document, "pointerup", () =>
    setTimeout(() => document.activeElement?.matches("input[type=checkbox]") && document.activeElement.blur(), 50),
  );

  // An arrow moves the cursor in what is typed, and goes to another item where there is nowhere left to move.
  let began = null;
  on(document, "focusin", (event) => {
    if (event.target.matches(FIELDS)) began = event.target.value;
  });
  const leaves = (field, key) => {
    if (field.closest(NUMBER) !== null && field.value !== began) return false; // typed, and not kept yet
    const end = key === "ArrowLeft" ? 0 : field.value.length;
    return field.selectionStart === end && field.selectionEnd === end;
  };
  const press = (field, key) => {
    field?.blur(); // first what was typed goes to the server, then the press
    named(key)?.click();
  };
  on(window, "keydown", (event) => {
    const plain = !event.altKey && !event.ctrlKey && !event.metaKey;
    const field = event.target instanceof Element ? event.target.closest(FIELDS) : null;
    const stop = () => {
      event.preventDefault();
      event.stopImmediatePropagation();
    };
    if (document.querySelector("[role=dialog]") !== null && field === null) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      if (field !== null && (field.closest(DESK) === null || field.closest(NUMBER) !== null)) return;
      stop();
      press(field, data.next);
    } else if (field === null) {
      if (event.key === "?" && plain) {
        stop();
        named(data.sheet)?.click();
      }
    } else if (field.closest(DESK) !== null && plain && !event.repeat) {
      if (event.key === "Escape") field.blur();
      else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && !event.shiftKey && leaves(field, event.key)) {
        stop();
        press(field, event.key === "ArrowLeft" ? data.left : data.right);
      }
    }
  });

  const look = getComputedStyle(parentElement);
  for (const name of ["background-color", "border-color", "text-color"])
    document.documentElement.style.setProperty(`--label-${name}`, look.getPropertyValue(`--st-${name}`));
  return () => own.abort();
}
