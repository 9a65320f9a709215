import { eq } from "drizzle-orm"
import { secondsFromNow } from "../core/time"
import type { JobHandler } from "../jobs/job-handler"
import { enqueue, type JobKind } from "../jobs/queue"
import { isOpen } from "../messages/facts"
import { feedback } from "../messages/settle"
import { messages } from "../messages/tables"
import type { Store } from "../store/store"
import { roleOf } from "./simulator"

const AFTER_SECONDS = 1
const PATIENCE_ATTEMPTS = 30

interface Complaint {
  message_id: string
}

/** `complain@` read its mail and did not like it: durable, so that a restart does not forget. */
export const mailboxComplain: JobKind<Complaint> = {
  name: "mailbox.complain",
  schedule: (attempt) => (attempt < PATIENCE_ATTEMPTS ? AFTER_SECONDS : undefined),
}

/** Called when the mail is stored; the complaint follows a second later. */
export async function plan(store: Store, message_id: string): Promise<void> {
  await store.tx(async (tx) => {
    const [row] = await tx.select().from(messages).where(eq(messages.id, message_id))
    if (!row) return
    const work = { payload: { message_id }, project_id: row.project_id }
    await enqueue(tx, mailboxComplain, { ...work, run_at: secondsFromNow(AFTER_SECONDS) })
  })
}

/** Waits for the delivery to be settled, then reports it as spam (RFC 5965, type `abuse`). */
export const complain = (store: Store): JobHandler<Complaint> => ({
  async run({ message_id }) {
    const [message] = await store.read.select().from(messages).where(eq(messages.id, message_id))
    const complainers =
      message?.recipients.filter(({ email }) => roleOf(email) === "complain") ?? []
    if (complainers.some(({ status }) => isOpen(status)))
      return { retry: "The message is not delivered yet." }
    return {
      async done(tx) {
        for (const { email } of complainers) {
          const fact = { type: "complained", complaint_feedback_type: "abuse" } as const
          await feedback(tx, message_id, { ...fact, recipient_email: email })
        }
      },
    }
  },
})
