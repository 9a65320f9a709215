import { render } from "preact"
import { App } from "./app"
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

const EVERY_MILLISECONDS = 1000

/** For work on the console itself: loads the page again when its sources changed. */
export function reloadAfterChanges(): void {
  let known: string | undefined
  const look = async () => {
    const version = await versionNow()
    if (known !== undefined && version !== undefined && version !== known) location.reload()
    known = version ?? known
    setTimeout(look, EVERY_MILLISECONDS)
  }
  void look()
}

async function versionNow(): Promise<string | undefined> {
  try {
    const answer = await fetch("/assets/version.txt")
    return answer.ok ? await answer.text() : undefined
  } catch {
    return undefined // the server starts again
  }
}
