import { useState } from "preact/hooks"
import { requestOf } from "../../client/client"
import { quoted } from "../curl"
import { ActionDialog } from "../parts/action-dialog"
import { Field } from "../parts/field"
import { call } from "../transport"
import type { OpenMail } from "./mail-records"

interface ResendDialogProps {
  mail: OpenMail
  onClose: () => void
  onSent: () => void
}

/** Sends the content of the message again, as a new message. */
export function ResendDialog({ mail, onClose, onSent }: ResendDialogProps) {
  const [to, setTo] = useState(mail.to)
  const email_id = mail.email_id ?? ""
  const input = { params: { email_id }, body: { to } }
  return (
    <ActionDialog
      title="Send this mail again?"
      action="Send again"
      said={`the mail goes to ${to} again`}
      run={() => call("POST /v1/emails/{email_id}/resend", input)}
      belfry={`belfry emails resend ${email_id} --to ${quoted(to)}`}
      request={requestOf("POST /v1/emails/{email_id}/resend", input)}
      onClose={onClose}
      onDone={onSent}
    >
      <p>The same content goes out as a new message, with a new Message-ID.</p>
      <Field label="To" value={to} onInput={setTo} required is_code />
    </ActionDialog>
  )
}
