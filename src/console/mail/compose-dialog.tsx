import { useEffect, useState } from "preact/hooks"
import { requestOf } from "../../client/client"
import { Button } from "../parts/button"
import { Commands } from "../parts/commands"
import { Dialog } from "../parts/dialog"
import { Field } from "../parts/field"
import { Trouble } from "../parts/notice"
import { tell } from "../parts/toast"
import { serverMode } from "../server-mode"
import { call } from "../transport"
import { bodyOf, firstMail, type MailDraft, sendCommand } from "./first-mail"

interface ComposeProps {
  onClose: () => void
  onSent: () => void
}

const SANDBOX_SENDER = "me@mailbox.test"

/** Writes and sends one mail, and says how a terminal or a program does the same. */
export function ComposeDialog({ onClose, onSent }: ComposeProps) {
  const [draft, setDraft] = useState(() => firstMail(SANDBOX_SENDER, location.origin))
  const [error, setError] = useState<unknown>()
  const [is_busy, setBusy] = useState(false)
  const change = (field: keyof MailDraft) => (value: string) =>
    setDraft((old) => ({ ...old, [field]: value }))

  useEffect(() => {
    ownSender().then((from) => setDraft((old) => ({ ...old, from })), setError)
  }, [])

  const send = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      await call("POST /v1/emails", { body: bodyOf(draft) })
      tell(`the mail to ${draft.to} is on its way`)
      onSent()
      onClose()
    } catch (thrown) {
      setError(thrown)
      setBusy(false)
    }
  }
  return (
    <Dialog title="Write a mail" onClose={onClose} is_wide>
      <form onSubmit={send}>
        {error !== undefined && <Trouble error={error} />}
        <Field label="From" required value={draft.from} onInput={change("from")} is_code />
        <Field label="To" required value={draft.to} onInput={change("to")} is_code />
        <Field label="Subject" required value={draft.subject} onInput={change("subject")} />
        <Field label="HTML" value={draft.html} onInput={change("html")} rows={7} is_code />
        <Field
          label="Text"
          value={draft.text}
          onInput={change("text")}
          rows={2}
          hint="Without it, Belfry makes the text out of the HTML."
        />
        <Commands
          belfry={sendCommand(draft)}
          request={requestOf("POST /v1/emails", { body: bodyOf(draft) })}
        />
        <div class="buttons end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="go" is_busy={is_busy}>
            Send
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

/** An address that this project may send from. */
async function ownSender(): Promise<string> {
  if (serverMode() === "up") return SANDBOX_SENDER
  const query = { status: "verified", per_page: 1 } as const
  const { data } = await call("GET /v1/domains", { query })
  const [first] = data
  return first ? `hello@${first.domain}` : SANDBOX_SENDER
}
