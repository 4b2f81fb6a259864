// Three radio buttons; what they choose is kept and carried out in frame.js.
export default function ({ parentElement }) {
  for (const button of parentElement.querySelectorAll(".concord-theme input")) {
    button.checked = button.value === (window.concordTheme?.chosen() ?? "system");
    button.onchange = () => window.concordTheme?.choose(button.value);
  }
}
