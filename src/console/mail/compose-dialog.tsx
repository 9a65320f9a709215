import { useState } from "preact/hooks"
import { isolated } from "../../lib/text"
import { serverMode } from "../browser"
import { useLoaded } from "../hooks"
import { ActionDialog, type DialogProps } from "../parts/dialog"
import { Field } from "../parts/field"
import { Trouble } from "../parts/notice"
import { call } from "../transport"
import { bodyOf, firstMail, type MailDraft, sendCommand } from "./mail-commands"

const SANDBOX_SENDER = "me@mailbox.test"

export function ComposeDialog(then: DialogProps) {
  const [written, setWritten] = useState<Partial<MailDraft>>({})
  const { value: from = SANDBOX_SENDER, error } = useLoaded(ownSender)
  const draft = { ...firstMail(from, location.origin), ...written }
  const field = (name: keyof MailDraft) => ({
    value: draft[name],
    onInput: (value: string) => setWritten((old) => ({ ...old, [name]: value })),
  })
  return (
    <ActionDialog
      title="Write a mail"
      is_wide
      action="Send"
      said={`the mail to ${isolated(draft.to)} is on its way`}
      operation="POST /v1/emails"
      input={{ body: bodyOf(draft) }}
      belfry={sendCommand(draft)}
      {...then}
    >
      <Trouble error={error} />
      <Field label="From" required {...field("from")} is_code />
      <Field label="To" required {...field("to")} is_code />
      <Field label="Subject" required {...field("subject")} />
      <Field label="HTML" {...field("html")} rows={7} is_code />
      <Field
        label="Text"
        {...field("text")}
        rows={2}
        hint="Without it, Belfry makes the text out of the HTML."
      />
    </ActionDialog>
  )
}

async function ownSender(): Promise<string> {
  if (serverMode() === "up") return SANDBOX_SENDER
  const query = { status: "verified", per_page: 1 } as const
  const { data } = await call("GET /v1/domains", { query })
  const [first] = data
  return first ? `hello@${first.domain}` : SANDBOX_SENDER
}
