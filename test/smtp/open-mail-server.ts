import type { KeyPair } from "../../src/core/certificate"
import { openMailServer } from "../../src/smtp/mail-servers"
import {
  type MailServerOptions,
  type MailSession,
  type ReceivedMail,
  refusalText,
  SmtpReplyError,
} from "../../src/smtp/mail-session"
import { cert, key } from "../core/certificate"
import { type DialogueOptions, plainLogin, SmtpDialogue } from "../harness/smtp-dialogue"

type TestOptions = Partial<Omit<MailServerOptions<string>, "limits">> & {
  limits?: Partial<MailServerOptions["limits"]>
  pair?: KeyPair | undefined
}

/** A mail server on free ports that accepts everything, and remembers it. */
export async function openTestMailServer({ limits, ...given }: TestOptions = {}) {
  const mails: ReceivedMail[] = []
  const sessions: MailSession<string>[] = []
  const listeners = new Set<() => void>()
  const certificate = { pair: "pair" in given ? given.pair : { key, cert } }
  const is_submission = given.kind !== "inbound"
  const server = await openMailServer<string>({
    kind: "submission",
    host: "mail.test",
    listen: { host: "127.0.0.1", port: 0 },
    certificate: {
      current: () => certificate.pair,
      onChange(listener) {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    },
    trusted_proxies: () => [],
    ...(is_submission && { authenticate: async (login) => checked(login) }),
    onRecipient: async (address) => {
      if (address.startsWith("nobody@")) {
        throw new SmtpReplyError(550, "5.1.1", refusalText("validation_error", "No such user"))
      }
    },
    onMail: async (mail, session) => {
      mails.push(mail)
      sessions.push({ ...session })
      return `2.0.0 Ok: queued as ${mails.length}`
    },
    isReady: () => undefined,
    ...given,
    limits: { size: 1_000_000, recipients: 100, connections: 500, per_address: 20, ...limits },
  })
  return {
    server,
    mails,
    sessions,
    replaceCertificate(pair: KeyPair | undefined) {
      certificate.pair = pair
      for (const listener of listeners) listener()
    },
    async [Symbol.asyncDispose]() {
      await server.close(0)
    },
  }
}

function checked({ username, password }: { username: string; password: string }): string {
  if (password === "right") return username
  throw new SmtpReplyError(535, "5.7.8", refusalText("unauthorized", "Wrong key"))
}

/** A client behind STARTTLS and AUTH. */
export async function loggedIn(
  { server }: { server: { port: number } },
  options: DialogueOptions = {},
): Promise<SmtpDialogue> {
  const it = await SmtpDialogue.open(server.port, options)
  await it.say("EHLO me.test")
  await it.starttls()
  await it.talk("EHLO me.test", plainLogin("svc", "right"))
  return it
}

export async function until(isTrue: () => boolean) {
  const ends_at = Date.now() + 30_000
  while (!isTrue()) {
    if (Date.now() > ends_at) throw new Error("It never came true")
    await Bun.sleep(5)
  }
}
