import { useState } from "preact/hooks"
import type { Components } from "../../client/components"
import { isolated } from "../../lib/text"
import { quoted } from "../curl"
import { useObservable } from "../hooks"
import { project } from "../page-session"
import { CodeBlock } from "../parts/code-block"
import { ActionDialog, type DialogProps } from "../parts/dialog"
import { Choice, Field } from "../parts/field"
import { Notice } from "../parts/notice"
import { projects } from "../session-start"

const FIRST_URL = "http://localhost:3000/hooks"

/** Adds an endpoint, and shows its signing secret, which comes once. */
export function WebhookDialog(then: DialogProps) {
  const [url, setUrl] = useState(FIRST_URL)
  const [types, setTypes] = useState("email.*")
  const events = types.split(/[\s,]+/).filter(Boolean)
  const input = { body: { url: url.trim(), events } }
  const flags = events.map((type) => ` --event ${quoted(type)}`).join("")
  return (
    <ActionDialog
      title="Add a webhook"
      action="Add"
      operation="POST /v1/webhooks"
      input={input}
      shown={({ data }) => secretOf(data)}
      belfry={`belfry webhooks create ${quoted(input.body.url)}${flags}`}
      {...then}
    >
      <p class="soft">Belfry signs each event of these types and posts it to this URL.</p>
      <Field label="URL" value={url} onInput={setUrl} required is_code />
      <Field
        label="Event types"
        value={types}
        onInput={setTypes}
        required
        is_code
        hint={
          <>
            With spaces between them. <a href="/docs/event-types">All types</a>
          </>
        }
      />
    </ActionDialog>
  )
}

const secretOf = ({ url, secret }: Components["WebhookWithSecret"]) => (
  <>
    <Notice tone="warn">
      <p>Keep this secret now: it is shown only once.</p>
    </Notice>
    <CodeBlock label="Signing secret" text={secret} />
    <p>
      With the secret, the program at <bdi>{url}</bdi> checks that an event is from this server.{" "}
      <a href="/docs/guides/webhooks#check-the-signature-yourself">How it checks</a>
    </p>
  </>
)

type Domain = Components["Domain"]

/** Adds a domain, and shows the records that its zone needs. */
export function DomainDialog(then: DialogProps) {
  const [domain, setDomain] = useState("")
  const input = { body: { domain: domain.trim() } }
  return (
    <ActionDialog
      title="Add a domain"
      action="Add"
      operation="POST /v1/domains"
      input={input}
      shown={({ data }) => recordsOf(data)}
      belfry={`belfry domains add ${quoted(input.body.domain || "example.com")}`}
      {...then}
    >
      <p class="soft">Mail then has a sender at this domain. Its zone must be yours to change.</p>
      <Field label="Domain" value={domain} onInput={setDomain} required is_code />
    </ActionDialog>
  )
}

const PURPOSES: Record<Components["DnsRecord"]["purpose"], string> = {
  verification: "Proof that the domain is yours",
  spf: "SPF",
  dkim: "DKIM",
  dmarc: "DMARC",
  return_path: "Return path",
  tracking: "Tracked links",
  receiving: "Receiving",
}

const nameOf = (type: string, priority: number | null, host: string) =>
  priority === null ? `${type} ${host}` : `${type} ${priority} ${host}`

const recordsOf = ({ domain, dns_records }: Domain) => (
  <>
    <p>
      Add these records to the zone of <bdi>{domain}</bdi>. Belfry looks for them again and again.
    </p>
    <ol class="records">
      {dns_records.map(({ purpose, type, host, value, priority, required }) => (
        <li key={`${type} ${host} ${value}`}>
          <h3>
            {PURPOSES[purpose]}
            {!required && <span class="soft"> (optional)</span>}
          </h3>
          <CodeBlock label={nameOf(type, priority, host)} text={value} />
        </li>
      ))}
    </ol>
    <CodeBlock label="Watch them come" text={`belfry domains check ${quoted(domain)} --watch`} />
    <p class="hint">
      <a href="/docs/guides/domains">What the records are for</a>
    </p>
  </>
)

const ACCOUNT_ROLES = [
  { value: "member", text: "Member: works in this project" },
  { value: "admin", text: "Admin: may do everything but own the account" },
  { value: "billing_admin", text: "Billing admin: sees plan and usage" },
] as const

const PROJECT_ROLES = [
  { value: "developer", text: "Developer: sends, and changes the set-up" },
  { value: "viewer", text: "Viewer: reads" },
  { value: "admin", text: "Admin: may do everything in it" },
] as const

type AccountRole = (typeof ACCOUNT_ROLES)[number]["value"]
type ProjectRole = (typeof PROJECT_ROLES)[number]["value"]

/** Sends a link by which somebody joins the account. */
export function InviteDialog(then: DialogProps) {
  const [email, setEmail] = useState("")
  const [role, setRole] = useState<AccountRole>("member")
  const [project_role, setProjectRole] = useState<ProjectRole>("developer")
  const chosen = useObservable(project)
  const name = useObservable(projects)?.find(({ id }) => id === chosen?.id)?.name
  const is_member = role === "member" && chosen !== null
  const granted = is_member ? [{ project_id: chosen.id, role: project_role }] : []
  const input = { body: { email: email.trim(), role, projects: granted } }
  const grants = granted.map((one) => ` --grant ${one.project_id}=${one.role}`).join("")
  return (
    <ActionDialog
      title="Invite somebody"
      action="Invite"
      said={`the invitation to ${isolated(input.body.email)} is on its way`}
      operation="POST /v1/accounts/me/members/invite"
      input={input}
      belfry={`belfry members invite ${quoted(input.body.email || "ann@example.com")} --role ${role}${grants}`}
      {...then}
    >
      <p class="soft">Belfry sends this person a mail with a link. The link works for 7 days.</p>
      <Field label="Email" value={email} onInput={setEmail} required is_code />
      <Choice label="Role" value={role} onChoose={setRole} options={ACCOUNT_ROLES} />
      {is_member && (
        <Choice
          label={`Role in ${name ?? "this project"}`}
          value={project_role}
          onChoose={setProjectRole}
          options={PROJECT_ROLES}
        />
      )}
    </ActionDialog>
  )
}
