import type { FunctionComponent } from "preact"
import { useState } from "preact/hooks"
import { serverMode } from "../browser"
import { quoted } from "../curl"
import { useLoaded, useObservable, usePoll, useTitle } from "../hooks"
import { ComposeDialog } from "../mail/compose-dialog"
import { type PageSession, project, session } from "../page-session"
import { Button } from "../parts/button"
import { CodeBlock } from "../parts/code-block"
import type { DialogProps } from "../parts/dialog"
import { Badge, Notice, Prose, Trouble } from "../parts/notice"
import { RequestError } from "../requests"
import { call } from "../transport"
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
        This server sends emails and texts for programs, and reports the result of each. Its own
        mailbox keeps the mail of tests.
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
  {
    to: "/inbox",
    name: "Inbox",
    text: "What a subscriber sees in your app.",
    is_only_under_up: true,
  },
  { to: "/docs", name: "Reference", text: "Each request with examples, and the guides." },
  { to: "/v1/openapi.json", name: "OpenAPI", text: "The same reference, for code generators." },
  { to: "/device", name: "Connect a program", text: "Enter the code that `belfry login` shows." },
  { to: "/readyz", name: "Health", text: "Whether this server can accept mail now." },
]

const Ways = () => (
  <section class="block">
    <h2>Where to go</h2>
    <ul class="ways">
      {WAYS.filter((way) => !way.is_only_under_up || serverMode() === "up").map(
        ({ to, name, text }) => (
          <li key={to}>
            <a href={to}>{name}</a>
            <span class="soft">
              <Prose text={text} />
            </span>
          </li>
        ),
      )}
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
  const [states, setStates] = useState<StepStates>({})
  const [error, setError] = useState<unknown>()
  const [opened, setOpened] = useState<StepRow>()
  const is_person = known.kind === "token" && known.user !== null
  const stateOf = ({ name }: StepRow): StepState => states[name] ?? "open"
  const next = STEPS.find((step) => wordOf(stateOf(step)) === "open")
  const look = () =>
    readSteps(is_person, states).then((found) => {
      setStates(found)
      setError(undefined)
    }, setError)
  usePoll(next ? EVERY_MILLISECONDS : undefined, look)
  const OpenDialog = opened?.Dialog
  return (
    <section class="block" aria-label="First steps">
      <h2>
        First steps <Badge tone={next ? "plain" : "good"}>{progressText(STEPS.map(stateOf))}</Badge>
      </h2>
      <Trouble error={error} onRetry={look} />
      <ol class="steps">
        {STEPS.map((step) => (
          <Step
            key={step.name}
            step={step}
            state={stateOf(step)}
            is_next={step === next}
            onOpen={() => setOpened(step)}
          />
        ))}
      </ol>
      {OpenDialog && <OpenDialog onClose={() => setOpened(undefined)} onDone={look} />}
    </section>
  )
}

/** How many steps are done, and in the end how many these credentials could not see. */
function progressText(states: StepState[]): string {
  const { done = [], open = [], unknown = [] } = Object.groupBy(states, wordOf)
  const progress = `${done.length} of ${STEPS.length}`
  if (open.length > 0 || unknown.length === 0) return progress
  const is_last = states.at(-1) === "unknown" && unknown.length === 1
  const whom = is_last ? "an owner or an admin" : "somebody with more rights"
  return `${progress}; only ${whom} can do the rest`
}

/** `unknown`: these credentials may not see it. What waits is open. */
type StepState = "open" | "done" | "unknown" | { waits_for: string }

const wordOf = (state: StepState) => (typeof state === "object" ? "open" : state)

type StepStates = Record<string, StepState>

interface StepRow {
  name: string
  title: string
  text: string
  /** Whether it is done. A text names what it waits for. */
  look: () => Promise<boolean | string>
  /** On the button that does it, by a dialog. */
  action?: string
  Dialog?: FunctionComponent<DialogProps>
  link?: { to: string; text: string }
  /** What to do where these credentials may not do it here. */
  otherwise?: { text: string; command: string }
}

const ONE = { per_page: 1 }

const STEPS: readonly StepRow[] = [
  {
    name: "send",
    title: "Send a first mail",
    text: "Belfry delivers it to the mailbox of this server, and nowhere else.",
    look: async () => (await call("GET /v1/mailbox", { query: ONE })).data.length > 0,
    action: "Write a mail",
    Dialog: ComposeDialog,
  },
  {
    name: "look",
    title: "Look at it",
    text: "As HTML on a phone and in the dark, as text, and as source.",
    look: async () =>
      (await call("GET /v1/mailbox", { query: { unread: false, ...ONE } })).data.length > 0,
    link: { to: "/mailbox", text: "Open the mailbox" },
  },
  {
    name: "webhook",
    title: "Hear what happened to it",
    text: "A webhook tells your program of each delivery, bounce and click.",
    look: async () => (await call("GET /v1/webhooks", { query: ONE })).data.length > 0,
    action: "Add a webhook",
    Dialog: WebhookDialog,
    otherwise: {
      text: "This key may not see webhooks. Another key or person may.",
      command: "belfry webhooks create http://localhost:3000/hooks --event 'email.*'",
    },
  },
  {
    name: "domain",
    title: "Add your domain",
    text: "Mail to real people needs a domain of yours, and some records in its zone.",
    look: lookAtDomains,
    action: "Add a domain",
    Dialog: DomainDialog,
    otherwise: {
      text: "This key may not see domains. Another key or person may.",
      command: "belfry domains add example.com",
    },
  },
  {
    name: "invite",
    title: "Invite somebody",
    text: "A colleague gets a link by mail, and joins with a role that you choose.",
    look: hasColleagues,
    action: "Invite somebody",
    Dialog: InviteDialog,
  },
]

const SIGNS = { done: "✓", open: "○", unknown: "–" }
const WORDS = { done: "Done: ", open: "To do: ", unknown: "Not known: " }

interface StepProps {
  step: StepRow
  state: StepState
  /** The first one that is open: its button is the main one. */
  is_next: boolean
  onOpen: () => void
}

const Step = ({ step, state, is_next, onOpen }: StepProps) => (
  <li class={wordOf(state)}>
    <span class="sign" aria-hidden="true">
      {SIGNS[wordOf(state)]}
    </span>
    <div>
      <h3>
        <span class="unseen">{WORDS[wordOf(state)]}</span>
        {step.title}
      </h3>
      <StepHelp step={step} state={state} />
      {step.action && (wordOf(state) === "open" || step.name === "send") && (
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
  if (typeof state === "object") return <WaitingDomain domain={state.waits_for} />
  if (state === "unknown" && name === "invite") return <InviteHelp />
  if (state === "open" || !otherwise) return <p class="soft">{text}</p>
  return (
    <>
      <p class="soft">{otherwise.text}</p>
      <CodeBlock label={title} text={otherwise.command} />
    </>
  )
}

const WaitingDomain = ({ domain }: { domain: string }) => (
  <>
    <p class="soft">
      <bdi>{domain}</bdi> waits for its records. The step is done when Belfry finds them.
    </p>
    <CodeBlock
      label="Look for the records"
      text={`belfry domains check ${quoted(domain)} --watch`}
    />
  </>
)

/** Only a person invites others, and the first one becomes the owner of the server in a terminal. */
function InviteHelp() {
  const { value } = useLoaded(readSetup)
  if (!value) return null
  return (
    <>
      <p class="soft">
        This page uses an API key, and only a person with a login can invite others.{" "}
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

/** How far the project is. A step that was done once is not asked for again. Throws where nothing answers. */
async function readSteps(is_person: boolean, known: StepStates): Promise<StepStates> {
  const states = STEPS.map(async ({ name, look }): Promise<[string, StepState]> => {
    if (known[name] === "done") return [name, "done"]
    // Only people may ask for other people.
    return [name, name === "invite" && !is_person ? "unknown" : await stateOf(look)]
  })
  return Object.fromEntries(await Promise.all(states))
}

async function stateOf(look: StepRow["look"]): Promise<StepState> {
  try {
    const found = await look()
    if (typeof found === "string") return { waits_for: found }
    return found ? "done" : "open"
  } catch (error) {
    if (error instanceof RequestError && error.status === 403) return "unknown"
    throw error
  }
}

/** A domain is there when it is verified. Else the newest one waits for its records. */
async function lookAtDomains(): Promise<boolean | string> {
  const verified = await call("GET /v1/domains", { query: { status: "verified", ...ONE } })
  if (verified.data.length > 0) return true
  const [newest] = (await call("GET /v1/domains", { query: ONE })).data
  return newest?.domain ?? false
}

/** Members beside oneself, and invitations. */
async function hasColleagues(): Promise<boolean> {
  const [members, invitations] = await Promise.all([
    call("GET /v1/accounts/me/members", { query: { per_page: 2 } }),
    call("GET /v1/accounts/me/invitations", { query: ONE }),
  ])
  return members.data.length - 1 + invitations.data.length > 0
}
