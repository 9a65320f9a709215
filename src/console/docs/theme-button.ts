import { chooseTheme, keptTheme, THEME_SIGNS, type ThemeChoice } from "../theme-choice"
import { element } from "./elements"

/** The switch of the console, at the end of the bar. */
export function addThemeButton(): void {
  const sign = element("span", { "aria-hidden": "true" })
  const button = element("button", { type: "button", class: "icon" }, sign)
  const show = (choice: ThemeChoice) => {
    const { sign: shown, text } = THEME_SIGNS[choice]
    sign.textContent = shown
    button.setAttribute("aria-label", text)
    button.title = text
  }
  button.addEventListener("click", () => {
    const { next } = THEME_SIGNS[keptTheme()]
    chooseTheme(next)
    show(next)
  })
  show(keptTheme())
  document.querySelector(".bar")?.append(button)
}
