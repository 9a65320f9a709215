import { useState } from "preact/hooks"
import type { Components } from "../../client/components"
import { isolated } from "../../lib/text"
import { serverMode } from "../browser"
import { curlOf, quoted } from "../curl"
import { useLoaded } from "../hooks"
import { CodeBlock } from "../parts/code-block"
import { ActionDialog, Dialog, type DialogProps } from "../parts/dialog"
import { Choice, Field } from "../parts/field"
import { Notice, Trouble, Waiting } from "../parts/notice"
import { RequestError } from "../requests"
import { call } from "../transport"
import { mailCommands, type OpenMail } from "./mail-commands"
import { MAILBOX_KEYS } from "./mailbox-keys"

interface MailDialogProps extends DialogProps {
  mail: OpenMail
}

/** All that the page does with a mail, for a terminal and for a program. */
export const CommandsDialog = ({ mail, onClose }: Omit<MailDialogProps, "onDone">) => (
  <Dialog title="From a terminal or a program" onClose={onClose} is_wide>
    {mailCommands(mail).map(({ title, belfry, request }) => (
      <section key={title}>
        <h3>{title}</h3>
        <CodeBlock label={`belfry: ${title}`} text={belfry} />
        <CodeBlock label={`curl: ${title}`} text={curlOf(request, location.origin)} />
      </section>
    ))}
  </Dialog>
)

export const DeleteDialog = ({ mail: { id, subject }, ...then }: MailDialogProps) => (
  <ActionDialog
    title="Delete this mail?"
    action="Delete"
    look="danger"
    said="the mail was deleted"
    operation="DELETE /v1/mailbox/{mail_id}"
    input={{ params: { mail_id: id } }}
    belfry={`belfry mailbox rm ${id} --yes`}
    {...then}
  >
    <p>
      “<bdi>{subject}</bdi>” leaves the mailbox for good. The message and its events stay.
    </p>
  </ActionDialog>
)

/** Sends the content of the message again, as a new message. */
export function ResendDialog({ mail, ...then }: MailDialogProps) {
  const [to, setTo] = useState(mail.to)
  const email_id = mail.email_id ?? ""
  return (
    <ActionDialog
      title="Send this mail again?"
      action="Send again"
      said={`Belfry sends the mail to ${isolated(to)} again`}
      operation="POST /v1/emails/{email_id}/resend"
      input={{ params: { email_id }, body: { to } }}
      belfry={`belfry emails resend ${email_id} --to ${quoted(to)}`}
      {...then}
    >
      <p>Belfry sends the same content as a new message, with a new Message-ID.</p>
      <Field label="To" value={to} onInput={setTo} required is_code />
    </ActionDialog>
  )
}

/** Hands the mail as it stands to a real provider. */
export function ReleaseDialog({ mail, ...then }: MailDialogProps) {
  const [to, setTo] = useState(mail.to)
  const [provider, setProvider] = useState("")
  const known = mail.release_refusal
  const { value: providers = [] } = useLoaded(readRelays)
  const options = [
    { value: "", text: "The first one that is ready" },
    ...providers.map((one) => ({ value: one.id, text: `${isolated(one.name)} (${one.provider})` })),
  ]
  return (
    <ActionDialog
      title="Release this mail to a relay?"
      action="Release"
      said={`Belfry sends the mail to ${isolated(to)} through a relay`}
      operation="POST /v1/mailbox/{mail_id}/release"
      input={{ params: { mail_id: mail.id }, body: { to, ...(provider && { provider }) } }}
      belfry={`belfry mailbox release ${mail.id} --to ${quoted(to)}${provider && ` --provider ${provider}`}`}
      look={known === null ? "go" : "plain"}
      explain={(error) =>
        obstacleIn(error) !== known && <Obstacle reason={obstacleIn(error)} sender={mail.from} />
      }
      {...then}
    >
      <Obstacle reason={known} sender={mail.from} />
      <p>Belfry sends the mail to a real mailbox, with a new Message-ID and signature.</p>
      <Field label="To" value={to} onInput={setTo} required is_code />
      {options.length > 1 && (
        <Choice label="Relay" value={provider} onChoose={setProvider} options={options} />
      )}
    </ActionDialog>
  )
}

/** Providers of email that leave the machine. A key that may not see them sees none. */
async function readRelays() {
  const query = { kind: "email_provider", per_page: 100 } as const
  const { data } = await call("GET /v1/providers", { query }).catch(() => ({ data: [] }))
  return data.filter(({ provider, enabled }) => enabled && provider !== "mailbox")
}

/** As `release_refusal` of a mail tells it. */
const obstacleIn = (error: unknown): string | null => {
  if (!(error instanceof RequestError)) return null
  return error.details.reason === "no_provider" ? "no_provider" : error.code
}

/** What a person does about a release that is refused: the commands, ready to copy. */
function Obstacle({ reason, sender }: { reason: string | null; sender: string }) {
  if (reason === "no_provider") return <NoRelay />
  // Of `Acme <hello@acme.test>`: `acme.test`.
  const domain = /@([^\s<>@]+)>?\s*$/.exec(sender)?.[1] ?? ""
  return reason === "domain_not_verified" ? <NotVerified domain={domain} /> : null
}

/** Neither the project nor the server delivers to anything but the mailbox. */
const NoRelay = () => {
  const { why, commands } = RELAYS[serverMode()]
  return (
    <Notice tone="warn">
      <p>{why} all other mail stays in the sandbox:</p>
      <CodeBlock label="In a terminal" text={commands} />
      <p class="hint">
        <a href="/docs/guides/providers">All providers</a>
      </p>
    </Notice>
  )
}

const RELAYS = {
  serve: {
    why: "This project delivers to the mailbox alone. An admin adds a relay;",
    commands: `belfry settings set sandbox=true
belfry providers set smtp --host smtp.example.com --username apikey --secret-stdin < relay-password`,
  },
  up: {
    why: "This server delivers to its mailbox alone. Start it with a relay;",
    commands: `belfry settings set sandbox=true
BELFRY_SENDING_DOMAINS=example.com BELFRY_DELIVERY_PROVIDER=smtp \\
  BELFRY_PROVIDERS_SMTP_HOST=smtp.example.com BELFRY_PROVIDERS_SMTP_USERNAME=apikey \\
  BELFRY_PROVIDERS_SMTP_PASSWORD=secret belfry up    # in place of the one that runs`,
  },
}

const MAILBOX_DOMAIN = "mailbox.test"

/** Relays take mail from domains that belong to the sender. */
function NotVerified({ domain }: { domain: string }) {
  const own = domain === "" || domain === MAILBOX_DOMAIN ? "example.com" : domain
  const commands = [
    `belfry domains add ${quoted(own)}`,
    `belfry domains check ${quoted(own)} --watch`,
  ].join("\n")
  return (
    <Notice tone="warn">
      <p>
        {own === domain
          ? `The domain ${domain} is not verified, so Belfry sends no mail under its name.`
          : "mailbox.test is for tests only. Write a mail from a domain of yours, and release that one."}
      </p>
      <CodeBlock label="Add and verify a domain" text={commands} />
      <CodeBlock
        label="Or allow it without a check, on your own machine"
        text={`BELFRY_SENDING_DOMAINS=${quoted(own)} belfry up`}
      />
      <p class="hint">
        <a href="/docs/guides/domains">What the records of a domain are for</a>
      </p>
    </Notice>
  )
}

export const DeleteAllDialog = (then: DialogProps) => (
  <ActionDialog
    title="Delete all mail of the mailbox?"
    action="Delete all"
    look="danger"
    said="the mailbox is empty"
    operation="DELETE /v1/mailbox"
    input={{}}
    belfry="belfry mailbox clear --yes"
    {...then}
  >
    <p>
      Belfry deletes all mail of this project from the mailbox, for good. It keeps messages and
      their events.
    </p>
  </ActionDialog>
)

const SIGNS: Record<string, string> = {
  ArrowDown: "↓",
  ArrowUp: "↑",
  ArrowRight: "→",
  ArrowLeft: "←",
  Escape: "Esc",
  Enter: "⏎",
}

export const KeysDialog = ({ onClose }: { onClose: () => void }) => (
  <Dialog title="Keys" onClose={onClose}>
    <dl class="facts">
      {MAILBOX_KEYS.map(({ keys, text }) => (
        <div class="pair" key={text}>
          <dt>
            {keys.map((key) => (
              <kbd key={key}>{SIGNS[key] ?? key}</kbd>
            ))}
          </dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
    <p class="hint">
      They are the keys of <code>belfry tui</code>.
    </p>
  </Dialog>
)

type Chaos = Components["MailboxChaos"]

const share = (name: keyof Chaos, what: string, like: string) => ({
  name,
  label: `Share of recipients that ${what}`,
  hint: `From 0 to 1. Each one ends as ${like}@mailbox.test does.`,
})

/** The first word of a name is the flag of a terminal. */
const FIELDS = [
  share("bounce_rate", "bounce", "bounce"),
  share("defer_rate", "are deferred", "defer"),
  share("refuse_rate", "are refused", "reject"),
  {
    name: "delay_ms" as const,
    label: "Delay of each answer",
    hint: "In milliseconds, 60000 at most.",
  },
]

export const readChaos = async (): Promise<Chaos> => (await call("GET /v1/mailbox/chaos")).data

/** Whether any mail goes wrong now, or waits. */
export const isChaotic = (chaos: Chaos): boolean => FIELDS.some(({ name }) => chaos[name] > 0)

/** Lets mail of this project go wrong in the mailbox, to see what a program makes of it. */
export function ChaosDialog(then: DialogProps) {
  const { value: known, error, again } = useLoaded(readChaos)
  const [typed, setTyped] = useState<Partial<Record<keyof Chaos, string>>>({})
  const fields = known
    ? FIELDS.map((field) => ({ ...field, value: typed[field.name] ?? String(known[field.name]) }))
    : []
  const body = Object.fromEntries(fields.map(({ name, value }) => [name, asNumber(value)]))
  const flags = Object.entries(body).flatMap(([name, value]) =>
    value ? ` --${name.split("_", 1)} ${value}` : [],
  )
  return (
    <ActionDialog
      title="Chaos"
      action="Set"
      said={flags.length > 0 ? "chaos is on" : "chaos is off"}
      operation="PUT /v1/mailbox/chaos"
      input={{ body: body as Partial<Chaos> }}
      belfry={`belfry mailbox chaos${flags.join("") || " --off"}`}
      {...then}
    >
      <p class="soft">
        The mailbox makes mail of this project fail on purpose. All shares together are 1 at most.
        Zero everywhere ends it.
      </p>
      <Trouble error={error} onRetry={again} />
      {!known && error === undefined && <Waiting />}
      {fields.map(({ name, ...field }) => (
        <Field
          key={name}
          {...field}
          onInput={(value) => setTyped({ ...typed, [name]: value })}
          is_code
        />
      ))}
    </ActionDialog>
  )
}

/** What is no number goes to the server as it is, which says what is wrong with it. */
function asNumber(text: string): number | string {
  const number = Number(text.trim().replace(",", "."))
  return Number.isNaN(number) ? text.trim() : number
}
