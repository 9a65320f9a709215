import { eq } from "drizzle-orm"
import { sendPasswordReset, userPasswordForgotten } from "../../src/auth/password-reset"
import { jobs } from "../../src/jobs/tables"
import { deliverAll } from "../harness/delivery"
import type { TestService } from "../harness/service"

export const PASSWORD = "Quiet-River-42"

/** What a user finds in a mail. */
interface Letter {
  subject: string
  text: string
  token: string | undefined
  code: string | undefined
}

const TOKEN = /belfry_(?:verify|reset|invitation|magic)_[\w-]{43}/
const CODE = /(?:^|[: ])(\d{6})\r?$/m

/** The mails that arrived at addresses, the newest last. */
export function letters(service: TestService) {
  const arrived = new Map<string, Letter[]>()
  const all = async (email: string): Promise<Letter[]> => {
    for (const { to, raw } of await deliverAll(service)) {
      const text = Buffer.from(raw).toString().replaceAll("=\r\n", "").replaceAll("=3D", "=")
      const [, subject = ""] = /^Subject: (.*)$/m.exec(text) ?? []
      const letter = { subject, text, token: TOKEN.exec(text)?.[0], code: CODE.exec(text)?.[1] }
      for (const address of to) arrived.set(address, [...(arrived.get(address) ?? []), letter])
    }
    return arrived.get(email) ?? []
  }
  return { all, last: async (email: string) => (await all(email)).at(-1) }
}

/** Does what the queue would do with requests for a new password. Resolves with their number. */
export async function runUserForgotten({ store, parts }: TestService): Promise<number> {
  const handler = sendPasswordReset(parts.auth)
  const mine = eq(jobs.name, userPasswordForgotten.name)
  const waiting = await store.read.select().from(jobs).where(mine)
  for (const job of waiting) {
    const verdict = await handler.run(job.payload as never, job)
    await store.tx(async (tx) => {
      if ("done" in verdict) await verdict.done?.(tx)
      await tx.delete(jobs).where(eq(jobs.id, job.id))
    })
  }
  return waiting.length
}

let last = 0

/** Headers of somebody at an address that nobody else has. */
export function elsewhere(): { "x-forwarded-for": string } {
  last += 1
  return { "x-forwarded-for": `198.51.${Math.floor(last / 250)}.${(last % 250) + 1}` }
}
