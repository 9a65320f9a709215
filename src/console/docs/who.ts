import { beginSession, session, signOut } from "../page-session"
import { messageOf } from "../requests"
import { element } from "./elements"

let begun: Promise<void> | undefined

/** The session of this page. One exchange serves all that ask: a second one would find its token used. */
export function docsSession(): Promise<void> {
  begun ??= beginSession(undefined).catch(() => {
    begun = undefined // no server: nobody is signed in here, until the next one asks
  })
  return begun
}

/** Puts the person and the way out in the place of the link "Sign in". */
export async function showWho(): Promise<void> {
  const enter = document.querySelector<HTMLElement>(".bar .enter")
  if (!enter) return
  await docsSession()
  delete document.documentElement.dataset.session
  const { value } = session
  if (value.kind !== "key" && value.kind !== "token") return
  const name = value.kind === "key" ? "an API key" : (value.user?.email ?? "this computer")
  const who = whoOf(name, () => who.replaceWith(enter))
  enter.replaceWith(who)
}

/** As in the bar of the console. */
function whoOf(name: string, onLeft: () => void): HTMLElement {
  const told = element("div", { class: "toasts", role: "status", "aria-live": "polite" })
  const leave = element("button", { class: "button quiet", type: "button" }, "Sign out")
  leave.addEventListener("click", async () => {
    leave.disabled = true
    leave.setAttribute("aria-busy", "true")
    told.replaceChildren()
    await signOut(onLeft).catch((error: unknown) => told.replaceChildren(failure(error)))
    leave.disabled = false
    leave.removeAttribute("aria-busy")
  })
  return element(
    "div",
    { class: "who" },
    element(
      "span",
      { class: "soft name" },
      element("span", { class: "unseen" }, "Signed in as "),
      element("bdi", {}, name),
    ),
    leave,
    told,
  )
}

const failure = (error: unknown) =>
  element(
    "div",
    { class: "toast bad" },
    element("p", {}, element("b", {}, "Failed:"), ` you are still signed in. ${messageOf(error)}`),
  )
