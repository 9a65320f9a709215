import { useState } from "preact/hooks"
import { ComposeDialog } from "../mail/compose-dialog"
import { type PageSession, project, session } from "../page-session"
import type { DialogProps } from "../parts/action-dialog"
import { Badge } from "../parts/badge"
import { Button } from "../parts/button"
import { CodeBlock } from "../parts/code-block"
import { Notice, Trouble } from "../parts/notice"
import { Prose } from "../parts/prose"
import { messageOf, RequestError } from "../request-error"
import { serverMode } from "../server-mode"
import { call } from "../transport"
import { useLoaded } from "../use-loaded"
import { useObservable } from "../use-observable"
import { usePoll } from "../use-poll"
import { useTitle } from "../use-title"
import { DomainDialog, InviteDialog, WebhookDialog } from "./step-dialogs"

/** `/`: what this is and where to go, and under `up` the first steps. */
export function Page() {
  useTitle("Belfry")
  const known = useObservable(session)
  const chosen = useObservable(project)
  // A person's requests name a project, so that they wait until it is chosen.
  const is_in_project =
    known.kind === "key" || (known.kind === "token" && (known.user === null || chosen !== null))
  return (
    <div class="narrow">
      <h1>Belfry</h1>
      <p>
        This server sends email for programs and reports the result of each email. Mail of tests
        stays in its own mailbox.
      </p>
      {serverMode() === "up" && is_in_project && <Checklist known={known} />}
      {known.kind === "signed_out" && <Entrance />}
      <Ways />
    </div>
  )
}

const Entrance = () => (
  <Notice>
    <p>
      {serverMode() === "up" ? (
        <>
          Open the link that <code>belfry up</code> printed. <code>belfry open</code> prints a new
          one.
        </>
      ) : (
        "Sign in to read the mailbox and to send mail from here."
      )}
    </p>
    <a class="button go" href="/sign-in">
      Sign in
    </a>
  </Notice>
)

const WAYS = [
  { to: "/mailbox", name: "Mailbox", text: "Mail that this server kept, as its readers see it." },
  { to: "/docs", name: "Reference", text: "Each request with examples, and the guides." },
  { to: "/v1/openapi.json", name: "OpenAPI", text: "The same reference, for code generators." },
  { to: "/device", name: "Connect a program", text: "Enter the code that `belfry login` shows." },
  { to: "/readyz", name: "Health", text: "Whether this server can accept mail now." },
]

const Ways = () => (
  <section class="block">
    <h2>Where to go</h2>
    <ul class="ways">
      {WAYS.map(({ to, name, text }) => (
        <li key={to}>
          <a href={to}>{name}</a>
          <span class="soft">
            <Prose text={text} />
          </span>
        </li>
      ))}
    </ul>
    <p class="hint">
      In a terminal, <code>belfry --help</code> lists all commands. <code>belfry tui</code> shows
      live what happens here.
    </p>
  </section>
)

const EVERY_MILLISECONDS = 5000

/** The steps tick themselves: the page looks at the project while one is open. */
function Checklist({ known }: { known: PageSession }) {
  const [states, setStates] = useState<StepStates>()
  const [error, setError] = useState<unknown>()
  const [opened, setOpened] = useState<StepName>()
  const is_person = known.kind === "token" && known.user !== null
  const is_over = states !== undefined && !Object.values(states).includes("open")
  const look = () =>
    readSteps(is_person, states).then((found) => {
      setStates(found)
      setError(undefined)
    }, setError)
  usePoll(is_over ? undefined : EVERY_MILLISECONDS, look)
  const shown = states ?? NOTHING_DONE
  const next = STEPS.find(({ name }) => shown[name] === "open")?.name
  return (
    <section class="block" aria-label="First steps">
      <h2>
        First steps <Badge tone={is_over ? "good" : "plain"}>{progressText(shown)}</Badge>
      </h2>
      {error !== undefined && <Trouble error={error} onRetry={look} />}
      <ol class="steps">
        {STEPS.map((step) => (
          <Step
            key={step.name}
            step={step}
            state={shown[step.name]}
            is_next={step.name === next}
            onOpen={() => setOpened(step.name)}
          />
        ))}
      </ol>
      {opened && <StepDialog name={opened} onClose={() => setOpened(undefined)} onDone={look} />}
    </section>
  )
}

/** How many steps are done, and in the end how many these credentials could not see. */
function progressText(states: StepStates): string {
  const {
    done = [],
    open = [],
    unknown = [],
  } = Object.groupBy(Object.values(states), (state) => state)
  if (open.length > 0 || unknown.length === 0) return `${done.length} of ${STEPS.length}`
  const needs = unknown.length === 1 ? "one needs" : `${unknown.length} need`
  const whom = states.invite === "unknown" && unknown.length === 1 ? "an owner" : "more rights"
  return `${done.length} of ${done.length}, ${needs} ${whom}`
}

/** What the button of a step opens. */
function StepDialog({ name, ...then }: DialogProps & { name: StepName }) {
  if (name === "webhook") return <WebhookDialog {...then} />
  if (name === "domain") return <DomainDialog {...then} />
  if (name === "invite") return <InviteDialog {...then} />
  return <ComposeDialog {...then} />
}

interface StepTexts {
  name: StepName
  title: string
  text: string
  /** On the button that does it. */
  action?: string
  link?: { to: string; text: string }
  /** What to do where these credentials may not do it here. */
  otherwise?: { text: string; command: string }
}

const STEPS: readonly StepTexts[] = [
  {
    name: "send",
    title: "Send a first mail",
    text: "It goes to the mailbox of this server, and nowhere else.",
    action: "Write a mail",
  },
  {
    name: "look",
    title: "Look at it",
    text: "As HTML on a phone and in the dark, as text, and as source.",
    link: { to: "/mailbox", text: "Open the mailbox" },
  },
  {
    name: "webhook",
    title: "Hear what happened to it",
    text: "A webhook tells your program of each delivery, bounce and click.",
    action: "Add a webhook",
    otherwise: {
      text: "This key may not see webhooks. Another key or person may.",
      command: "belfry webhooks create http://localhost:3000/hooks --event 'email.*'",
    },
  },
  {
    name: "domain",
    title: "Add your domain",
    text: "Mail to real people needs a domain of yours, and some records in its zone.",
    action: "Add a domain",
    otherwise: {
      text: "This key may not see domains. Another key or person may.",
      command: "belfry domains add example.com",
    },
  },
  {
    name: "invite",
    title: "Invite somebody",
    text: "A colleague gets a link by mail, and joins with a role that you choose.",
    action: "Invite somebody",
  },
]

const SIGNS = { done: "✓", open: "○", unknown: "–" }
const WORDS = { done: "Done: ", open: "To do: ", unknown: "Not known: " }

interface StepProps {
  step: StepTexts
  state: StepStates[StepName]
  /** The first one that is open: its button is the main one. */
  is_next: boolean
  onOpen: () => void
}

const Step = ({ step, state, is_next, onOpen }: StepProps) => (
  <li class={state}>
    <span class="sign" aria-hidden="true">
      {SIGNS[state]}
    </span>
    <div>
      <h3>
        <span class="unseen">{WORDS[state]}</span>
        {step.title}
      </h3>
      <StepHelp step={step} state={state} />
      {step.action && (state === "open" || step.name === "send") && (
        <Button look={is_next ? "go" : "plain"} onClick={onOpen}>
          {state === "done" ? "Write another mail" : step.action}
        </Button>
      )}
      {step.link && (
        <a class={is_next ? "button go" : "button"} href={step.link.to}>
          {step.link.text}
        </a>
      )}
    </div>
  </li>
)

function StepHelp({ step, state }: Pick<StepProps, "step" | "state">) {
  const { name, title, text, otherwise } = step
  if (state === "done") return null
  if (state === "unknown" && name === "invite") return <InviteHelp />
  if (state === "open" || !otherwise) return <p class="soft">{text}</p>
  return (
    <>
      <p class="soft">{otherwise.text}</p>
      <CodeBlock label={title} text={otherwise.command} />
    </>
  )
}

/** Only a person invites others, and the first one becomes the owner of the server in a terminal. */
function InviteHelp() {
  const { value } = useLoaded(readSetup)
  if (!value) return null
  return (
    <>
      <p class="soft">
        Only people invite others, and this page has the rights of a key.{" "}
        {value.required ? (
          <>
            The first command makes you the owner. It asks for the setup token that{" "}
            <code>belfry up</code> printed.
          </>
        ) : (
          "Sign out here, and sign in with email and password. Or use a terminal."
        )}
      </p>
      <CodeBlock
        label="Invite somebody"
        text={`belfry ${value.required ? "setup" : "login"} ${location.origin}\nbelfry members invite ann@example.com`}
      />
    </>
  )
}

/** Whether the server still waits for its first owner. */
const readSetup = async () => (await call("GET /v1/setup")).data

/** `unknown`: these credentials may not see it. */
type StepState = "open" | "done" | "unknown"

type StepName = "send" | "look" | "webhook" | "domain" | "invite"

type StepStates = Record<StepName, StepState>

const NOTHING_DONE: StepStates = {
  send: "open",
  look: "open",
  webhook: "open",
  domain: "open",
  invite: "open",
}

const ONE = { per_page: 1 }

/** How far the project is. A step that was done once is not asked for again. Throws where nothing answers. */
async function readSteps(
  is_person: boolean,
  known: StepStates = NOTHING_DONE,
): Promise<StepStates> {
  const anyOf = async (name: StepName, count: () => Promise<number>): Promise<StepState> =>
    known[name] === "done" ? "done" : stateOf(count)
  const [send, look, webhook, domain, invite] = await Promise.all([
    anyOf("send", async () => (await call("GET /v1/mailbox", { query: ONE })).data.length),
    anyOf(
      "look",
      async () => (await call("GET /v1/mailbox", { query: { unread: false, ...ONE } })).data.length,
    ),
    anyOf("webhook", async () => (await call("GET /v1/webhooks", { query: ONE })).data.length),
    anyOf("domain", async () => (await call("GET /v1/domains", { query: ONE })).data.length),
    is_person ? anyOf("invite", countColleagues) : ("unknown" as const),
  ])
  return { send, look, webhook, domain, invite }
}

async function stateOf(count: () => Promise<number>): Promise<StepState> {
  try {
    return (await count()) > 0 ? "done" : "open"
  } catch (error) {
    if (error instanceof RequestError && error.status === 403) return "unknown"
    throw error instanceof Error ? error : new Error(messageOf(error))
  }
}

/** Members beside oneself, and invitations. */
async function countColleagues(): Promise<number> {
  const [members, invitations] = await Promise.all([
    call("GET /v1/accounts/me/members", { query: { per_page: 2 } }),
    call("GET /v1/accounts/me/invitations", { query: ONE }),
  ])
  return members.data.length - 1 + invitations.data.length
}
