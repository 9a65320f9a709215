import { purgeAccount, purgeProject } from "./accounts/purging"
import { complain, mailboxComplain } from "./mailbox/complain"
import * as messages from "./messages/pipeline"
import { purgeAccountNow, purgeProjectNow } from "./purge"
import { bind, type Handlers } from "./store/job-loop"
import type { Store } from "./store/store"

/** Every kind of background work there is, and who does it. */
export const jobTable = (store: Store, channels: messages.Channels): Handlers => ({
  ...bind(messages.deliverMessage, {
    run: (payload, { attempt }) => messages.deliver(store, channels, payload, attempt),
    onDead: messages.giveUp,
  }),
  ...bind(mailboxComplain, complain(store)),
  ...bind(purgeProject, {
    run: async ({ id }) => {
      await purgeProjectNow(store, id)
      return {}
    },
  }),
  ...bind(purgeAccount, {
    run: async ({ id }) => {
      await purgeAccountNow(store, id)
      return {}
    },
  }),
})
