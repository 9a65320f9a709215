import type { Settings } from "../../core/config"
import type { SesPlace } from "../../providers/ses/api"
import { ownAccess } from "../../providers/ses/own"
import { smtpSchedule } from "../schedule"
import { mailbox } from "./mailbox"
import type { EmailProvider } from "./provider"
import { ses } from "./ses"
import { smtp } from "./smtp"

/** The provider which the settings name. `mailbox_port` is where the embedded mailbox listens. */
export function openProvider(
  settings: Settings,
  { mailbox_port, place }: { mailbox_port: number | null; place: SesPlace },
): EmailProvider {
  // As many as there are deliveries at once: none of them should have to wait for a connection.
  const max_connections = settings["delivery.concurrency"]
  if (settings["delivery.provider"] === "mailbox") {
    if (mailbox_port === null) {
      throw new Error("delivery.provider is mailbox, but mailbox.enabled is false.")
    }
    return mailbox({ port: mailbox_port, max_connections })
  }
  const schedule = smtpSchedule(settings["delivery.retry.max_age"] / 1000)
  const access = ownAccess(settings)
  if (access) return ses({ access, place, schedule })
  return smtp({
    host: settings["providers.smtp.host"] ?? "",
    port: settings["providers.smtp.port"],
    username: settings["providers.smtp.username"] ?? undefined,
    password: settings["providers.smtp.password"] ?? undefined,
    tls: settings["providers.smtp.tls"],
    limits: { max_connections },
    schedule,
  })
}

/** Where projects in the sandbox send to, whoever delivers otherwise; undefined where it is not. */
export const openSandbox = (mailbox_port: number | null): EmailProvider | undefined =>
  mailbox_port === null ? undefined : mailbox({ port: mailbox_port })
