const KEY = "belfry-docs-language"

/** The chosen language of the examples holds for every page of this browser. */
export function keepLanguage(): void {
  const choices = document.querySelectorAll<HTMLInputElement>('input[name="language"]')
  const kept = keptLanguage()
  for (const choice of choices) {
    if (choice.value === kept) choice.checked = true
    choice.addEventListener("change", () => keep(choice.value))
  }
}

function keptLanguage(): string | null {
  try {
    return localStorage.getItem(KEY)
  } catch {
    return null // a browser may refuse to store anything
  }
}

function keep(language: string): void {
  try {
    localStorage.setItem(KEY, language)
  } catch {
    // Not kept; it holds until the page is left.
  }
}
