import { useState } from "preact/hooks"
import { requestOf } from "../../client/client"
import type { Components } from "../../client/components"
import { quoted } from "../curl"
import { ActionDialog } from "../parts/action-dialog"
import { CodeBlock } from "../parts/code-block"
import { Field } from "../parts/field"
import { Notice } from "../parts/notice"
import { call } from "../transport"
import type { StepDialogProps } from "./step-dialogs"

const FIRST_URL = "http://localhost:3000/hooks"

/** Adds an endpoint, and shows its signing secret, which comes once. */
export function WebhookDialog({ onClose, onDone }: StepDialogProps) {
  const [url, setUrl] = useState(FIRST_URL)
  const [types, setTypes] = useState("email.*")
  const events = types.split(/[\s,]+/).filter(Boolean)
  const input = { body: { url: url.trim(), events } }
  const flags = events.map((type) => ` --event ${quoted(type)}`).join("")
  return (
    <ActionDialog
      title="Add a webhook"
      action="Add"
      run={async () => (await call("POST /v1/webhooks", input)).data}
      shown={secretOf}
      belfry={`belfry webhooks create ${quoted(input.body.url)}${flags}`}
      request={requestOf("POST /v1/webhooks", input)}
      onClose={onClose}
      onDone={onDone}
    >
      <p class="soft">Belfry posts each event of these types to the address, and signs it.</p>
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
