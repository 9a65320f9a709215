import { render } from "preact"
import { App } from "./app"
import { reloadAfterChanges } from "./development"
import { startRouter, takeLinkCode } from "./router"
import { signInWithLink, startSession } from "./session-start"
import "./shared-parts"

/** Replaced by the bundler: whether the page comes from the sources. */
declare const IS_DEVELOPMENT: boolean

if (IS_DEVELOPMENT) reloadAfterChanges()
const link_code = takeLinkCode()
startRouter()
void startSession(link_code)
// In a tab that shows this page already, a link that is opened changes no more than the part behind "#".
addEventListener("hashchange", () => {
  const code = takeLinkCode()
  if (code !== undefined) void signInWithLink(code)
})
const root = document.getElementById("console")
if (root) {
  root.replaceChildren()
  render(<App />, root)
}
