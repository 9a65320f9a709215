/** `system` follows the setting of the device. */
export type ThemeChoice = "system" | "light" | "dark"

const KEY = "belfry-theme"

/** What was chosen in this browser before. */
export function keptTheme(): ThemeChoice {
  try {
    const kept = localStorage.getItem(KEY)
    return kept === "light" || kept === "dark" ? kept : "system"
  } catch {
    return "system" // a browser may refuse to store anything
  }
}

export function applyTheme(choice: ThemeChoice): void {
  const { dataset } = document.documentElement
  if (choice === "system") delete dataset.theme
  else dataset.theme = choice
}

/** Shows the theme, and keeps it for later visits. */
export function chooseTheme(choice: ThemeChoice): void {
  applyTheme(choice)
  try {
    if (choice === "system") localStorage.removeItem(KEY)
    else localStorage.setItem(KEY, choice)
  } catch {
    // Not kept; it holds until the page is closed.
  }
}

/** What a switch shows for each choice, and what it chooses next. */
export const THEME_SIGNS: Record<ThemeChoice, { next: ThemeChoice; sign: string; text: string }> = {
  system: { next: "light", sign: "◐", text: "Theme: as the system" },
  light: { next: "dark", sign: "☀", text: "Theme: light" },
  dark: { next: "system", sign: "☾", text: "Theme: dark" },
}
