import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import type { Components } from "../../client/components"
import { isolated } from "../../lib/text"
import { quoted } from "../curl"
import { useLoaded, useTitle } from "../hooks"
import { Button } from "../parts/button"
import { CodeBlock } from "../parts/code-block"
import { ActionDialog, type DialogProps } from "../parts/dialog"
import { Choice, Field } from "../parts/field"
import { Empty, Notice, Trouble, Waiting } from "../parts/notice"
import { keptTheme } from "../theme-choice"
import { call } from "../transport"

type Subscriber = Components["Subscriber"]

/** So many show at once; a search finds the others. */
const AT_ONCE = 25

/** `/inbox`, under `up` alone: the inbox of one subscriber, as their own page would show it. */
export function Page() {
  useTitle("Inbox")
  const [search, setSearch] = useState("")
  const load = useCallback(
    async () =>
      (
        await call("GET /v1/subscribers", {
          query: { per_page: AT_ONCE, ...(search && { search }) },
        })
      ).data,
    [search],
  )
  const { value: found, error, again } = useLoaded(load)
  return (
    <div class="narrow">
      <h1>Inbox</h1>
      <p>
        This is what <code>&lt;belfry-inbox&gt;</code> shows to a subscriber. What you do here
        happens in their inbox.
      </p>
      <Trouble error={error} onRetry={again} />
      <Field
        label="Find a subscriber"
        type="search"
        value={search}
        onInput={setSearch}
        hint="By the first letters of a name, an email or your own id."
      />
      {found ? <Found subscribers={found} is_search={search !== ""} /> : !error && <Waiting />}
    </div>
  )
}

interface FoundProps {
  subscribers: readonly Subscriber[]
  is_search: boolean
}

function Found({ subscribers, is_search }: FoundProps) {
  const [id, setId] = useState("")
  const [is_sending, setSending] = useState(false)
  const chosen = subscribers.find((one) => one.id === id) ?? subscribers[0]
  if (!chosen)
    return (
      <Empty title={is_search ? "No subscriber is called so" : "There are no subscribers yet"}>
        {!is_search && (
          <CodeBlock label="belfry" text="belfry subscribers create user-42 --name Ann" />
        )}
      </Empty>
    )
  const options = subscribers.map((one) => ({ value: one.id, text: nameOf(one) }))
  return (
    <>
      <Choice label="Subscriber" value={chosen.id} onChoose={setId} options={options} />
      <Preview key={chosen.id} subscriber_id={chosen.id} />
      <Button look="go" onClick={() => setSending(true)}>
        Send a message
      </Button>
      {is_sending && (
        <SendDialog subscriber={chosen} onClose={() => setSending(false)} onDone={() => {}} />
      )}
    </>
  )
}

const nameOf = ({ external_id, name, email }: Subscriber) =>
  [name, email, external_id]
    .filter(Boolean)
    .map((text) => isolated(text ?? ""))
    .join(" · ")

interface SendProps extends DialogProps {
  subscriber: Subscriber
}

function SendDialog({ subscriber: { id, external_id }, ...then }: SendProps) {
  const [title, setTitle] = useState("Hello")
  const [body, setBody] = useState("")
  const more = body && ` --body ${quoted(body)}`
  return (
    <ActionDialog
      title="Send a message"
      action="Send"
      said="the message is in the inbox"
      operation="POST /v1/inbox"
      input={{ body: { subscriber_id: id, title, ...(body && { body }) } }}
      belfry={`belfry inbox send --to ${quoted(external_id)} --title ${quoted(title)}${more}`}
      {...then}
    >
      <Field label="Title" value={title} onInput={setTitle} required />
      <Field label="Text" value={body} onInput={setBody} rows={3} />
    </ActionDialog>
  )
}

/** The element from `/inbox.js` itself. It asks for a token with the rights of the reader. */
function Preview({ subscriber_id }: { subscriber_id: string }) {
  const place = useRef<HTMLElement>(null)
  const [problem, setProblem] = useState("")
  useEffect(() => {
    const token = async () => {
      const body = { subscriber_id, ttl_seconds: TOKEN_SECONDS }
      return (await call("POST /v1/subscriber-inbox/token", { body })).data.token
    }
    const theme = keptTheme()
    const inbox = Object.assign(document.createElement("belfry-inbox"), { token })
    inbox.setAttribute("layout", "panel")
    if (theme !== "system") inbox.setAttribute("theme", theme)
    inbox.addEventListener("belfry-problem", (event) => {
      setProblem((event as CustomEvent<{ message: string }>).detail.message)
    })
    inbox.addEventListener("belfry-change", (event) => {
      if ((event as CustomEvent<{ state: string }>).detail.state === "live") setProblem("")
    })
    place.current?.replaceChildren(inbox)
    // The bundler leaves an address that is a value alone: the server has the script beside the console.
    import(SCRIPT).catch(() => setProblem("The script of the inbox did not load."))
  }, [subscriber_id])
  return (
    <>
      {problem && (
        <Notice tone="bad">
          <p>{problem}</p>
        </Notice>
      )}
      <section class="block" aria-label="Inbox of the subscriber" ref={place} />
    </>
  )
}

const SCRIPT = "/inbox.js" as string

/** The element asks for another one when it is over. */
const TOKEN_SECONDS = 3600
