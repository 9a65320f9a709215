import { useState } from "preact/hooks"
import { requestOf } from "../../client/client"
import type { Components } from "../../client/components"
import { quoted } from "../curl"
import { ActionDialog } from "../parts/action-dialog"
import { CodeBlock } from "../parts/code-block"
import { Field } from "../parts/field"
import { call } from "../transport"
import type { StepDialogProps } from "./step-dialogs"

type Domain = Components["Domain"]

/** Adds a domain, and shows the records that its zone needs. */
export function DomainDialog({ onClose, onDone }: StepDialogProps) {
  const [domain, setDomain] = useState("")
  const input = { body: { domain: domain.trim() } }
  return (
    <ActionDialog
      title="Add a domain"
      action="Add"
      run={async () => (await call("POST /v1/domains", input)).data}
      shown={recordsOf}
      belfry={`belfry domains add ${quoted(input.body.domain || "example.com")}`}
      request={requestOf("POST /v1/domains", input)}
      onClose={onClose}
      onDone={onDone}
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
