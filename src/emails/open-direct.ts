import type { Settings } from "../core/config"
import { resolver } from "../core/dns"
import { log } from "../core/log"
import { putOff, type Turn, type WaitingFor } from "../messages/put-off"
import type { Store } from "../store/store"
import { direct } from "./providers/direct"
import type { Places } from "./providers/places"
import type { EmailProvider } from "./providers/provider"
import { smtpSchedule } from "./schedule"
import { policyStore } from "./smtp/mta-sts-policies"
import type { Crowd } from "./smtp/permits"

/** Delivery to the recipients' own mail servers, as the settings want it. */
export const openDirect = (settings: Settings, store: Store, places: Places): EmailProvider =>
  direct({
    dns: resolver({ servers: settings["dns.servers"] }),
    policies: policyStore(store),
    port: settings["delivery.mx_port"],
    per_domain: settings["delivery.per_domain"],
    concurrency: settings["delivery.concurrency"],
    places,
    allow_private: settings["delivery.allow_private"],
    ehlo_name: settings["delivery.ehlo_name"] ?? undefined,
    onCrowd: crowdControl(store, ({ domain }) => ({ domain })),
    schedule: smtpSchedule(settings["delivery.retry.max_age"] / 1000),
  })

/** Sends whoever waits for a crowded domain away together, each domain once at a time. */
export function crowdControl(
  store: Store,
  messagesOf: (crowd: Crowd) => WaitingFor | undefined,
): (crowd: Crowd, turn: Turn) => void {
  const busy = new Set<string>()
  const clear = async (domain: string, waiting: WaitingFor, turn: Turn) => {
    try {
      while ((await putOff(store, waiting, turn)) > 0);
    } catch (error) {
      log.warn("waiting messages to a busy domain could not be deferred", { domain, error })
    } finally {
      busy.delete(domain)
    }
  }
  return (crowd, turn) => {
    const { domain } = crowd
    const waiting = messagesOf(crowd)
    if (!waiting || busy.has(domain)) return
    busy.add(domain)
    void clear(domain, waiting, turn)
  }
}
