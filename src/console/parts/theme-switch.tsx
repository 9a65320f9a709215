import { useState } from "preact/hooks"
import { chooseTheme, keptTheme, THEME_SIGNS } from "../theme-choice"

/** Goes through system, light and dark. The choice is kept in this browser. */
export function ThemeSwitch() {
  const [choice, setChoice] = useState(keptTheme())
  const { next, sign, text } = THEME_SIGNS[choice]
  const change = () => {
    chooseTheme(next)
    setChoice(next)
  }
  return (
    <button type="button" class="icon" aria-label={text} title={text} onClick={change}>
      <span aria-hidden="true">{sign}</span>
    </button>
  )
}
