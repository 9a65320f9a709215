import type { Settings } from "../core/config"
import { resolver } from "../core/dns"
import { log } from "../core/log"
import { putOff, type Turn } from "../messages/put-off"
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
    onCrowd: crowdControl(store),
    schedule: smtpSchedule(settings["delivery.retry.max_age"] / 1000),
  })

/** Sends whoever waits for a crowded domain away together, each domain once at a time. */
export function crowdControl(store: Store): (domain: string, turn: Turn) => void {
  const busy = new Set<string>()
  const clear = async (domain: string, turn: Turn) => {
    try {
      while ((await putOff(store, domain, turn)) > 0);
    } catch (error) {
      log.warn("a crowded domain could not be cleared", { domain, error })
    } finally {
      busy.delete(domain)
    }
  }
  return (domain, turn) => {
    if (busy.has(domain)) return
    busy.add(domain)
    void clear(domain, turn)
  }
}
