import { complain, mailboxComplain } from "./mailbox/complain"
import * as messages from "./messages/pipeline"
import { bind, type Handlers } from "./store/job-handler"
import type { Store } from "./store/store"

/** Every kind of background work there is, and who does it. */
export const jobTable = (store: Store, channels: messages.Channels): Handlers => ({
  ...bind(messages.deliverMessage, {
    run: (payload, job) => messages.deliver(store, channels, payload, job),
    onDead: messages.giveUp,
  }),
  ...bind(mailboxComplain, complain(store)),
})
