import { quoted } from "../curl"

/** What a person writes; the fields of `POST /v1/emails` that the page offers. */
export interface MailDraft {
  from: string
  to: string
  subject: string
  html: string
  text: string
}

/** A mail that shows what the mailbox can do, if it is sent as it stands. */
export const firstMail = (from: string, origin: string): MailDraft => ({
  from,
  to: "you@mailbox.test",
  subject: "It works",
  html: `<h1>It works</h1>
<p>This is the first mail of <b>Belfry</b>. Look at it at the width of a phone, and in the dark.</p>
<p><a href="${origin}/docs">The reference</a> says how a program sends it.
<a href="http://127.0.0.1:9/nowhere">This link is dead</a>: the check of the links finds it.</p>`,
  text: "",
})

/** The body of the request: an empty field is left out. */
export function bodyOf({ from, to, subject, html, text }: MailDraft) {
  return { from, to, subject, ...(html && { html }), ...(text && { text }) }
}

/** The same mail from a terminal. */
export function sendCommand(draft: MailDraft): string {
  const flags = Object.entries(bodyOf(draft)).map(([name, value]) => `--${name} ${quoted(value)}`)
  return ["belfry emails send", ...flags].join(" \\\n  ")
}
