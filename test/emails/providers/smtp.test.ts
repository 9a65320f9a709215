import { smtp } from "../../../src/emails/providers/smtp"
import { emailProviderContract } from "../../contracts/email-provider"
import { type Script, smtpSink } from "../../fakes/smtp-sink"

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
