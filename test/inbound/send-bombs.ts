/**
 * Sends the named mails that were made to hurt to a mail server, from a process of its own: argument 1 is
 * a file with `{port, to, key, names}`. Prints one line of JSON a mail: its name, and the reply.
 */
import { readFileSync } from "node:fs"
import { canonical, dotStuffed } from "../../src/lib/mail-text"
import { BOMBS } from "../fixtures/reports/bombs"
import { plainLogin, SmtpDialogue } from "../harness/smtp-dialogue"

export interface BombRun {
  port: number
  to: string
  /** Logs in with it, behind STARTTLS. */
  key: string | null
  names: string[]
}

const { port, to, key, names }: BombRun = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8"))

for (const name of names) {
  const raw = Buffer.from(canonical(BOMBS[name]?.() ?? ""))
  using it = await SmtpDialogue.open(port, { local: "127.0.0.66" })
  await it.say("EHLO bomb.test")
  if (key !== null) {
    await it.starttls()
    await it.talk("EHLO bomb.test", plainLogin("svc", key))
  }
  await it.talk("MAIL FROM:<bomb@elsewhere.test>", `RCPT TO:<${to}>`, "DATA")
  it.write(dotStuffed(raw))
  const reply = await it.reply().catch((error: Error) => ({ text: error.message }))
  console.log(JSON.stringify({ name, size: raw.length, reply: reply.text }))
}
process.exit(0)
