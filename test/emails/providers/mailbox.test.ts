import { inArray } from "drizzle-orm"
import { mailboxProvider } from "../../../src/emails/providers/mailbox"
import { mailboxMails } from "../../../src/mailbox/tables"
import { emailProviderContract, mailTo } from "../../contracts/email-provider"
import { providerContract } from "../../contracts/provider"
import { testContext } from "../../harness/providers"
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

providerContract(mailboxProvider, async () => {
  const it = await openTestMailbox()
  return {
    credentials: {},
    context: testContext({ mailbox_port: it.server.port }),
    messages: {
      accepted: mailTo("ann@example.test"),
      deferred: mailTo("softbounce@mailbox.test"),
      refused: mailTo("bounce@mailbox.test"),
    },
    success: "delivered",
    leave: () => it.server.close(),
    [Symbol.asyncDispose]: () => it[Symbol.asyncDispose](),
  }
})
