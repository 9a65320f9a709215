import { keep, kept } from "./kept"

/** `system` follows the setting of the device. */
export type ThemeChoice = "system" | "light" | "dark"

export function keptTheme(): ThemeChoice {
  const theme = kept("theme")
  return theme === "light" || theme === "dark" ? theme : "system"
}

export function applyTheme(choice: ThemeChoice): void {
  const { dataset } = document.documentElement
  if (choice === "system") delete dataset.theme
  else dataset.theme = choice
}

/** Shows the theme, and keeps it for later visits. */
export function chooseTheme(choice: ThemeChoice): void {
  applyTheme(choice)
  keep("theme", choice === "system" ? undefined : choice)
}

/** What a switch shows for each choice, and what it chooses next. */
export const THEME_SIGNS: Record<ThemeChoice, { next: ThemeChoice; sign: string; text: string }> = {
  system: { next: "light", sign: "◐", text: "Theme: as the system" },
  light: { next: "dark", sign: "☀", text: "Theme: light" },
  dark: { next: "system", sign: "☾", text: "Theme: dark" },
}
