import { useCallback, useState } from "preact/hooks"
import { requestOf } from "../../client/client"
import { quoted } from "../curl"
import { ActionDialog } from "../parts/action-dialog"
import { Choice, Field } from "../parts/field"
import { call } from "../transport"
import { useLoaded } from "../use-loaded"
import type { OpenMail } from "./mail-records"
import { ReleaseObstacle } from "./release-obstacles"

interface ReleaseDialogProps {
  mail: OpenMail
  onClose: () => void
  onReleased: () => void
}

const FIRST = "first"

/** Hands the mail as it stands to a real provider. */
export function ReleaseDialog({ mail, onClose, onReleased }: ReleaseDialogProps) {
  const { id } = mail
  const [to, setTo] = useState(mail.to)
  const [provider, setProvider] = useState(FIRST)
  const { value: providers } = useLoaded(useCallback(readRelays, []))
  const body = { to, ...(provider !== FIRST && { provider }) }
  const input = { params: { mail_id: id }, body }
  const flag = provider === FIRST ? "" : ` --provider ${provider}`
  const options = [
    { value: FIRST, text: "The first one that is ready" },
    ...(providers ?? []).map((one) => ({ value: one.id, text: `${one.name} (${one.provider})` })),
  ]
  return (
    <ActionDialog
      title="Release this mail to a relay?"
      action="Release"
      said={`the mail goes to ${to} through a relay`}
      run={() => call("POST /v1/mailbox/{mail_id}/release", input)}
      belfry={`belfry mailbox release ${id} --to ${quoted(to)}${flag}`}
      request={requestOf("POST /v1/mailbox/{mail_id}/release", input)}
      onClose={onClose}
      onDone={onReleased}
      explain={(error) => <ReleaseObstacle error={error} sender_domain={domainOf(mail.from)} />}
    >
      <p>The mail leaves this server as it stands, and reaches a real mailbox.</p>
      <Field label="To" value={to} onInput={setTo} required is_code />
      {options.length > 1 && (
        <Choice label="Relay" value={provider} onChoose={setProvider} options={options} />
      )}
    </ActionDialog>
  )
}

/** Of `Acme <hello@acme.test>`: `acme.test`. */
const domainOf = (from: string): string => /@([^\s<>@]+)>?\s*$/.exec(from)?.[1] ?? ""

/** Providers of email that leave the machine. A key that may not see them sees none. */
async function readRelays() {
  const query = { kind: "email_provider", per_page: 100 } as const
  const { data } = await call("GET /v1/providers", { query }).catch(() => ({ data: [] }))
  return data.filter(({ provider, enabled }) => enabled && provider !== "mailbox")
}
