import { addCopyButtons, nameThisServer } from "./docs/copy-buttons"
import { keepLanguage } from "./docs/language-choice"
import { openOldAddress, openPlace } from "./docs/old-addresses"
import { startSearch } from "./docs/search-box"
import { addThemeButton } from "./docs/theme-button"
import { mayBeSignedIn } from "./known-browser"

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
