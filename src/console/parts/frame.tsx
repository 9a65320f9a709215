import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { useObservable } from "../hooks"
import { chooseProject, project, session, signOut } from "../page-session"
import { messageOf } from "../requests"
import { navigate } from "../router"
import { projects } from "../session-start"
import { Button, ThemeSwitch } from "./button"
import { Choice } from "./field"
import { notify, Toasts } from "./toast"

const WAYS = [
  { to: "/", text: "Start" },
  { to: "/mailbox", text: "Mailbox" },
  { to: "/docs", text: "Reference" },
]

export const Frame = ({ path, children }: { path: string; children: ComponentChildren }) => (
  <>
    <a class="skip" href="#page">
      Skip to the page
    </a>
    <header class="bar">
      <a class="brand" href="/">
        Belfry
      </a>
      <nav aria-label="Pages">
        {WAYS.map(({ to, text }) => (
          <a key={to} href={to} aria-current={isHere(path, to) ? "page" : undefined}>
            {text}
          </a>
        ))}
      </nav>
      <Who path={path} />
      <ThemeSwitch />
    </header>
    <main id="page" tabIndex={-1}>
      {children}
    </main>
    <Toasts />
  </>
)

const isHere = (path: string, to: string) =>
  path === to || (to !== "/" && path.startsWith(`${to}/`))

/** The person or the key that works here, the project, and the way out. */
function Who({ path }: { path: string }) {
  const known = useObservable(session)
  const [is_leaving, setLeaving] = useState(false)
  if (known.kind === "unknown" || path === "/sign-in") return null
  if (known.kind === "signed_out")
    return (
      <a class="button" href={`/sign-in?next=${encodeURIComponent(path)}`}>
        Sign in
      </a>
    )
  const leave = async () => {
    setLeaving(true)
    try {
      await signOut(() => navigate("/"))
    } catch (error) {
      notify(`you are still signed in. ${messageOf(error)}`, "bad")
    }
    setLeaving(false)
  }
  const name = known.kind === "key" ? "an API key" : (known.user?.email ?? "this computer")
  return (
    <div class="who">
      <ProjectChoice />
      <span class="soft name">
        <span class="unseen">Signed in as </span>
        <bdi>{name}</bdi>
      </span>
      <Button look="quiet" is_busy={is_leaving} onClick={leave}>
        Sign out
      </Button>
    </div>
  )
}

function ProjectChoice() {
  const all = useObservable(projects) ?? []
  const chosen = useObservable(project)
  if (all.length < 2 || chosen === null) return null
  const options = all.map(({ id, name }) => ({ value: id, text: name }))
  const choose = (id: string) => {
    const found = all.find((one) => one.id === id)
    if (found) chooseProject(found)
  }
  return (
    <Choice label="Project" is_label_hidden value={chosen.id} onChoose={choose} options={options} />
  )
}
