import { inArray } from "drizzle-orm"
import { mailboxMails } from "../../../src/mailbox/tables"
import { emailProviderContract } from "../../contracts/email-provider"
import { openTestMailbox } from "../../mailbox/open-mailbox"

emailProviderContract("mailbox", async () => {
  const it = await openTestMailbox()
  const { store, project_id, provider } = it
  return {
    provider,
    success: "delivered",
    addresses: {
      accepted: "ann@example.test",
      other: "bob@mailbox.test",
      deferred: "softbounce@mailbox.test",
      refused: "bounce@mailbox.test",
    },
    async received() {
      const ours = inArray(mailboxMails.project_id, [project_id])
      const mails = await store.read.select().from(mailboxMails).where(ours)
      return mails.map(({ raw }) => raw.toString())
    },
    [Symbol.asyncDispose]: () => it[Symbol.asyncDispose](),
  }
})
