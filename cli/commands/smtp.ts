import type { Command } from "commander"
import { groupOf } from "../lib/resource"
import { examples, lazily } from "../lib/run"
import { SMTP_PROGRAMS } from "./smtp-credentials"

const SERVER = "server as host or host:port (default: that of the profile, port 587 or 2587)"
const TLS = ["--tls <mode>", "starttls, implicit or none (default: by the port)"] as const

/** Mail by SMTP: tries a submission server, and writes the configuration of programs that use one. */
export function define(program: Command): void {
  const smtp = groupOf(program, "smtp", "try submission by SMTP, and configure programs for it")
  smtp.addHelpText("after", examples("smtp test", "smtp credentials --for postfix"))
  smtp
    .command("test [server]")
    .description("hold a whole SMTP dialogue with a server, and print it without the password")
    .summary("hold a whole SMTP dialogue with a server, and print it")
    .option("--from <address>", "sender; with --to, a mail is sent")
    .option("--to <address>", "recipient; with --from, a mail is sent")
    .option("--subject <text>", "subject of the mail (default: A test of SMTP)")
    .option(...TLS)
    .option("--username <name>", "user name (default: svc)")
    .option("--password-stdin", "read the password from stdin (default: the API key)")
    .option("--no-login", "do not log in")
    .option("--ca <file>", "PEM file of an authority to trust, beside the well-known ones")
    .option("--insecure", "log in although the certificate is not trusted")
    .addHelpText(
      "after",
      `\nArgument:\n  server  ${SERVER}\n${examples(
        "smtp test",
        "smtp test mail.example.com --from me@example.com --to ann@example.net",
        "smtp test mail.example.com:465 --json=outcome,tls,ms",
      )}`,
    )
    .action(lazily(async () => (await import("../local/smtp-test")).smtpTest))

  smtp
    .command("credentials [server]")
    .description("print what a program needs to send mail through this server, with the API key")
    .option("--for <program>", `configuration of a program: ${SMTP_PROGRAMS.join(", ")}`)
    .option("--from <address>", "sender in the configuration (default: you@example.com)")
    .option(...TLS)
    .addHelpText(
      "after",
      `\nArgument:\n  server  ${SERVER}\n${examples(
        "smtp credentials",
        "smtp credentials mail.example.com --for postfix",
        "smtp credentials --for msmtp --from me@example.com > ~/.msmtprc",
      )}`,
    )
    .action(lazily(async () => (await import("./smtp-credentials")).smtpCredentials))
}
