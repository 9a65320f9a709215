import type { Settings } from "../core/config"
import { resolver } from "../core/dns"
import type { Store } from "../store/store"
import { policyStore } from "./mta-sts-policies"
import { direct } from "./providers/direct"
import type { EmailProvider } from "./providers/provider"
import { smtpSchedule } from "./schedule"

/** Delivery to the recipients' own mail servers, as the settings want it. */
export const openDirect = (settings: Settings, store: Store): EmailProvider =>
  direct({
    dns: resolver({ servers: settings["dns.servers"] }),
    policies: policyStore(store),
    port: settings["delivery.mx_port"],
    per_domain: settings["delivery.per_domain"],
    concurrency: settings["delivery.concurrency"],
    allow_private: settings["delivery.allow_private"],
    ehlo_name: settings["delivery.ehlo_name"] ?? undefined,
    schedule: smtpSchedule(settings["delivery.retry.max_age"] / 1000),
  })
