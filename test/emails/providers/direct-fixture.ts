import { resolver } from "../../../src/core/dns"
import { newId } from "../../../src/core/ids"
import { type DirectOptions, direct } from "../../../src/emails/providers/direct"
import type { EmailProvider } from "../../../src/emails/providers/provider"
import type { KeptPolicy, PolicyStore } from "../../../src/emails/smtp/mta-sts"
import { DeferredError } from "../../../src/jobs/work-item"
import { mailTo } from "../../contracts/email-provider"
import { nameServer, type Say } from "../../core/name-server"
import { PATIENT } from "../../harness/waits"

/** `MX b.test` → records; what is not said is NXDOMAIN. */
export type Names = Record<string, Say | (() => Say)>

export const mx = (...hosts: [priority: number, exchange: string][]): Say =>
  hosts.map(([priority, exchange]) => ({ priority, exchange }))

export const a = (...addresses: string[]): Say => addresses.map((address) => ({ address }))

export const txt = (...records: string[]): Say => records.map((data) => ({ data }))

/** Policies in memory, as the database would keep them. */
export function policyMemory(): PolicyStore & { kept: Map<string, KeptPolicy> } {
  const kept = new Map<string, KeptPolicy>()
  return {
    kept,
    find: async (domain) => kept.get(domain),
    keep: async (policy) => void kept.set(policy.domain, policy),
  }
}

/** The provider, on a scripted name server of its own, for servers on the loopback. */
export async function directOn(names: Names, options: Partial<DirectOptions> = {}) {
  const server = await nameServer((name, kind) => {
    const said = names[`${kind} ${name.toLowerCase()}`]
    return (typeof said === "function" ? said() : said) ?? "NXDOMAIN"
  })
  const policies = policyMemory()
  const provider = direct({
    dns: resolver({ servers: [server.address], try_ms: 1_000 }),
    policies,
    allow_private: ["127.0.0.0/8"],
    ehlo_name: "mail.belfry.test",
    timeouts: PATIENT,
    ...options,
  })
  let sent = 0
  return {
    provider,
    policies,
    asked: () => server.asked(),
    /** Each mail with an id of its own, as messages have. */
    send: (...to: string[]) =>
      provider.send({ ...mailTo(...to), message_id: `019a0000-0000-7000-8000-${++sent}` }),
    async [Symbol.asyncDispose]() {
      await provider.close()
      server.close()
    },
  }
}

/** The same, for who has no queue: each mail has its own id, and comes again until there is room. */
export const patient = (provider: EmailProvider): EmailProvider => ({
  ...provider,
  async send(mail) {
    for (;;) {
      try {
        return await provider.send({ ...mail, message_id: newId() })
      } catch (error) {
        if (!(error instanceof DeferredError)) throw error
        await Bun.sleep(5)
      }
    }
  },
})
