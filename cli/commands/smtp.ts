import type { OptionWords } from "../lib/field-flags"
import { own, type Resource } from "../lib/resource"
import { later } from "../lib/run"
import { SMTP_PROGRAMS, smtpCredentials } from "./smtp-credentials"

const SERVER =
  "Argument:\n  server  server as host or host:port (default: that of the profile, port 587 or 2587)"
const TLS: OptionWords = ["--tls <mode>", "starttls, implicit or none (default: by the port)"]

const test = later(async () => (await import("../local/smtp-test")).smtpTest)

/** Mail by SMTP: tries a submission server, and writes the configuration of programs that use one. */
export const smtpResource: Resource = {
  noun: "smtp",
  about: "try submission by SMTP, and configure programs for it",
  example: ["smtp test", "smtp credentials --for postfix"],
  rows: [
    own("test [server]", test, {
      about: "hold a whole SMTP dialogue with a server, and print it without the password",
      note: SERVER,
      example: [
        "",
        "mail.example.com --from me@example.com --to ann@example.net",
        "mail.example.com:465 --json=outcome,tls,ms",
      ],
      options: [
        ["--from <address>", "sender; with --to, a mail is sent"],
        ["--to <address>", "recipient; with --from, a mail is sent"],
        ["--subject <text>", "subject of the mail (default: A test of SMTP)"],
        TLS,
        ["--username <name>", "user name (default: svc)"],
        ["--password-stdin", "read the password from stdin (default: the API key)"],
        ["--no-login", "do not log in"],
        ["--ca <file>", "PEM file of an authority to trust, beside the well-known ones"],
        ["--insecure", "log in although the certificate is not trusted"],
      ],
    }),
    own("credentials [server]", smtpCredentials, {
      about: "print what a program needs to send mail through this server, with the API key",
      note: SERVER,
      example: [
        "",
        "mail.example.com --for postfix",
        "--for msmtp --from me@example.com > ~/.msmtprc",
      ],
      options: [
        ["--for <program>", `configuration of a program: ${SMTP_PROGRAMS.join(", ")}`],
        ["--from <address>", "sender in the configuration (default: you@example.com)"],
        TLS,
      ],
    }),
  ],
}
