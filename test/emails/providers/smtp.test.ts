import { smtp, smtpProvider } from "../../../src/emails/providers/smtp"
import { emailProviderContract, mailTo } from "../../contracts/email-provider"
import { providerContract } from "../../contracts/provider"
import { type Script, smtpSink } from "../../fakes/smtp-sink"
import { testContext } from "../../harness/providers"

const byRecipient = (line: string) => {
  if (line.includes("<no@")) return "550 5.1.1 nobody here"
  return line.includes("<later@") ? "450 4.2.0 not now" : undefined
}

const open = (script: Script) => async () => {
  const sink = smtpSink({ RCPT: byRecipient, ...script })
  const provider = smtp({ host: "127.0.0.1", port: sink.port, tls: "none" })
  return {
    provider,
    success: "sent" as const,
    addresses: {
      accepted: "ann@example.test",
      other: "bob@example.test",
      deferred: "later@example.test",
      refused: "no@example.test",
    },
    received: () => sink.received,
    async [Symbol.asyncDispose]() {
      await provider.close()
      sink[Symbol.dispose]()
    },
  }
}

emailProviderContract("smtp", open({}))
emailProviderContract("smtp without pipelining", open({ EHLO: "250 sink.test" }))

const LOGIN = { username: "belfry", password: "the right password" }
const RIGHT = btoa(`\0${LOGIN.username}\0${LOGIN.password}`)

providerContract(smtpProvider, async () => {
  const sink = smtpSink({
    RCPT: byRecipient,
    EHLO: "250-sink.test\r\n250-PIPELINING\r\n250 AUTH PLAIN",
    AUTH: (line) => (line.includes(RIGHT) ? undefined : "535 5.7.8 wrong"),
  })
  return {
    credentials: { host: "127.0.0.1", port: sink.port, ...LOGIN, tls: "none" },
    context: testContext(),
    messages: {
      accepted: mailTo("ann@example.test"),
      deferred: mailTo("later@example.test"),
      refused: mailTo("no@example.test"),
    },
    success: "sent",
    leave: () => sink[Symbol.dispose](),
    async [Symbol.asyncDispose]() {
      sink[Symbol.dispose]()
    },
  }
})
