import { addCopyButtons, element, nameThisServer } from "./docs/elements"
import { startSearch } from "./docs/search-box"
import { keep, kept, mayBeSignedIn } from "./kept"
import { chooseTheme, keptTheme, THEME_SIGNS, type ThemeChoice } from "./theme-choice"

/** The script of the reference. The pages are whole without it. */
openOldAddress()
openPlace()
addEventListener("hashchange", openPlace)
nameThisServer()
addCopyButtons()
keepLanguage()
startSearch()
addThemeButton()
if (mayBeSignedIn()) void import("./docs/who").then(({ showWho }) => showWho())
showPlace()

const place = document.querySelector<HTMLElement>("[data-try]")
if (place) import("./docs/try-it").then(({ offerTry }) => offerTry(place))

/** Scrolls the contents, and not the page, to the link of this page. */
function showPlace(): void {
  const contents = document.querySelector<HTMLElement>(".contents")
  const link = contents?.querySelector("[aria-current]")
  if (!contents || !link) return
  const distance = link.getBoundingClientRect().top - contents.getBoundingClientRect().top
  contents.scrollTop += distance - contents.clientHeight / 2
}

/** The reference was one page once: `/docs#getEmails` now has a page of its own. */
function openOldAddress(): void {
  if (location.pathname !== "/docs") return
  const name = location.hash.slice(1)
  const selector = `a[href="/docs/${CSS.escape(name)}"]`
  const link = document.getElementById(name)?.querySelector<HTMLAnchorElement>(selector)
  if (link) location.replace(link.href)
}

/** A place inside of what is closed is opened, also where the browser does not do it by itself. */
function openPlace(): void {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)))
  if (place instanceof HTMLDetailsElement) place.open = true
}

/** The chosen language of the examples holds for every page of this browser. */
function keepLanguage(): void {
  const choices = document.querySelectorAll<HTMLInputElement>('input[name="language"]')
  const language = kept("language")
  for (const choice of choices) {
    if (choice.value === language) choice.checked = true
    choice.addEventListener("change", () => keep("language", choice.value))
  }
}

/** The switch of the console, at the end of the bar. */
function addThemeButton(): void {
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
